/** The command with which a person signs in, for the first time or again. */
export const loginCommand = (name: string): string => `ringneck account login ${name}`;

const AGAIN = 'sign in again: ';

/** Why an account is parked whose sign-in the service has ended, with the command that mends it. */
export const signInAgain = (name: string): string => AGAIN + loginCommand(name);

export const mustSignInAgain = (reason: string | null): boolean => reason?.startsWith(AGAIN) ?? false;
