import type { LeftToOriginal } from '../base/secrets/secrets.ts';
import { loginCommand } from '../base/sign-in-again.ts';

/** What to know of a data folder whose original lives on. */
export function notesOnCopy({ sign_in_again, dropped }: LeftToOriginal): string[] {
  const notes = [
    'the service keeps one set of subscriptions per client: before you start up here, set another client than the original has ' +
      '(RINGNECK_CLIENT_ID, RINGNECK_CLIENT_SECRET), or leave RINGNECK_CALLBACK_URL unset; else its events come here, and no longer to the original',
  ];
  if (sign_in_again.length) {
    notes.push(`the original goes on to renew the sign-in of ${sign_in_again.join(', ')}: to read them here too, ${loginCommand('NAME')}`);
  }
  if (dropped.length) {
    notes.push(`sealed with another key than there is now, and therefore not kept in this copy: the sign-in of ${dropped.join(', ')}`);
  }
  return notes;
}
