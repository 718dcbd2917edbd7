import { isScope, type Scope, scopeMeanings } from '../../../schema/scopes.ts';

export const languages = ['en', 'de'] as const;
export type Language = (typeof languages)[number];

/** What the pages tell of the study and of the service. */
export interface Facts {
  study: string;
  contact: string;
  /** The host at which people sign in. */
  host: string;
}

/** A page's heading and paragraphs. */
export interface PageText {
  title: string;
  paragraphs: readonly string[];
}

/** All sentences of the pages in one language. */
export interface Texts {
  invitation: (facts: Facts) => PageText;
  dataHeading: string;
  dataNote: (facts: Facts) => string;
  withdrawHeading: string;
  withdrawNote: (facts: Facts) => string;
  studyHeading: (facts: Facts) => string;
  pageChanged: string;
  agree: string;
  disagree: string;
  connected: (facts: Facts) => PageText;
  allowedHeading: string;
  askedHeading: string;
  askedNote: (facts: Facts) => string;
  withdrawLinkHeading: string;
  withdrawLinkNote: string;
  pending: (facts: Facts) => PageText;
  closed: (facts: Facts) => PageText;
  refused: (facts: Facts) => PageText;
  failed: (facts: Facts) => PageText;
  textAway: (facts: Facts) => PageText;
  unfinished: (facts: Facts) => PageText;
  notAdmitted: (facts: Facts) => PageText;
  elsewhere: (facts: Facts) => PageText;
  enrolled: (facts: Facts) => PageText;
  unread: (facts: Facts) => PageText;
  another: (facts: Facts) => PageText;
  unrecognised: (facts: Facts) => PageText;
  again: string;
  withdrawal: (facts: Facts) => PageText;
  withdraw: string;
  withdrawn: (facts: Facts) => PageText;
  giveBack: string;
  notTakenBack: (facts: Facts) => string;
  ended: (facts: Facts) => PageText;
  notWithdrawn: (facts: Facts) => PageText;
  busy: (facts: Facts) => PageText;
  foreign: (facts: Facts) => PageText;
  scope: (word: string) => string;
}

const english: Texts = {
  invitation: ({ study, contact }) => ({
    title: `${study}: share the data of your ring`,
    paragraphs: [`${study} asks you to share the data of your ring.`, `Who asks, and answers your questions: ${contact}`],
  }),
  dataHeading: 'Which data',
  dataNote: ({ host }) =>
    `You sign in at ${host}, where you can leave out what you do not want to share. Nobody here sees your password. Past and new data are read from then on, until you withdraw.`,
  withdrawHeading: 'How to withdraw',
  withdrawNote: ({ host, contact }) =>
    `Taking part is voluntary. At the end you get a link by which you can withdraw at any time, without giving a reason. You can also end the access at ${host}, or write to ${contact}. No data are read after that. What was read before stays until the study erases it: ask for that at the same address.`,
  studyHeading: ({ study }) => `What ${study} says`,
  pageChanged: 'What this page says has changed since you opened it. Please read it again.',
  agree: 'I agree: continue to the sign-in',
  disagree: 'If you do not agree, close this page. Nothing is stored.',
  connected: ({ study }) => ({ title: 'Thank you', paragraphs: [`${study} can now read the data of your ring that you have allowed.`] }),
  allowedHeading: 'You have allowed',
  askedHeading: 'You were asked for',
  askedNote: ({ host }) => `${host} has not told which of these you allowed. What you left out is not read.`,
  withdrawLinkHeading: 'Your link to withdraw',
  withdrawLinkNote: 'Keep this link, and give it to nobody. It is shown only here:',
  pending: ({ host }) => ({
    title: 'One moment',
    paragraphs: [`${host} takes its time. This page looks again by itself in some seconds.`],
  }),
  closed: ({ contact }) => ({
    title: 'This link cannot be used',
    paragraphs: ['It was used already, has expired or was revoked, or a part of it is missing.', `Ask for a new one: ${contact}`],
  }),
  refused: () => ({
    title: 'Nothing was shared',
    paragraphs: ['You did not allow the access, and nothing was stored. Your invitation can still be used.'],
  }),
  failed: ({ contact }) => ({
    title: 'That did not work',
    paragraphs: ['Nothing was stored. Please try again in some minutes.', `If it happens again: ${contact}`],
  }),
  textAway: ({ study, contact }) => ({
    title: 'This invitation cannot be shown now',
    paragraphs: [
      `What ${study} wants you to read first cannot be shown at present. Nothing was stored, and your invitation can still be used.`,
      `Please tell the study, and open your link again later: ${contact}`,
    ],
  }),
  unfinished: ({ host }) => ({
    title: 'The sign-in was not completed',
    paragraphs: [`${host} did not complete the sign-in, and nothing was stored. Your invitation can still be used.`],
  }),
  notAdmitted: ({ study, host, contact }) => ({
    title: 'You were not let in',
    paragraphs: [
      `${host} did not let you in, and nothing was stored. That is not your fault: ${study} has been told. Your invitation can still be used.`,
      `If it happens again: ${contact}`,
    ],
  }),
  elsewhere: ({ contact }) => ({
    title: 'This sign-in was not begun here',
    paragraphs: [
      'It was begun in another browser or too long ago, or this site was started anew since. Nothing is stored by opening this page. Open the link of your invitation again, and stay in one browser.',
      `If that link cannot be used any more, you may have signed in already. Ask, also for a link to withdraw: ${contact}`,
    ],
  }),
  enrolled: ({ study, contact }) => ({
    title: 'You take part already',
    paragraphs: [
      `You have signed in to ${study} before, and that still holds. Nothing was stored twice, and you need not do anything.`,
      `If that is not so: ${contact}`,
    ],
  }),
  unread: ({ study, contact }) => ({
    title: 'You took part before',
    paragraphs: [
      `You have signed in to ${study} before, and your data are not read now: you have withdrawn, or the access has ended. Nothing was stored this time.`,
      `To take part again, ask for a new link for your first sign-in: ${contact}`,
    ],
  }),
  another: ({ host, contact }) => ({
    title: 'Somebody else signed in',
    paragraphs: [
      `This invitation is for a person who took part before, and who had another account at ${host}. Nothing was stored.`,
      `Sign out at ${host}, then open your invitation again. If that is not so: ${contact}`,
    ],
  }),
  unrecognised: ({ host, contact }) => ({
    title: 'You were not recognised',
    paragraphs: [
      'This invitation is for a person who took part before, and nobody could tell whether that is you. Nothing was stored.',
      `Open your invitation again, and leave “${scopeMeanings.personal}” (personal) ticked at ${host}. If you did that: ${contact}`,
    ],
  }),
  again: 'Back to the invitation',
  withdrawal: ({ study, contact }) => ({
    title: `Withdraw from ${study}`,
    paragraphs: [
      'When you withdraw, your data are not read any more, and the access is given back.',
      `What was read before stays until the study erases it. Ask for that: ${contact}`,
    ],
  }),
  withdraw: 'Withdraw',
  withdrawn: ({ study, contact }) => ({
    title: 'You have withdrawn',
    paragraphs: [`${study} does not read your data any more, and has been told.`, `To have erased what was read before: ${contact}`],
  }),
  notTakenBack: ({ host }) =>
    `${host} has not confirmed that the access is given back. Where it still lists the access, you can remove it there. It is not used any more.`,
  giveBack: 'Try again to give the access back',
  ended: ({ study, contact }) => ({
    title: 'Your data are not read any more',
    paragraphs: [`${study} has ended that, and there is nothing left to withdraw.`, `To have erased what was read before: ${contact}`],
  }),
  notWithdrawn: ({ contact }) => ({
    title: 'That did not work',
    paragraphs: [
      'Your withdrawal may not be complete. Please open your link again in some minutes: it shows whether there is anything left to do.',
      `If it happens again: ${contact}`,
    ],
  }),
  busy: () => ({ title: 'Please wait', paragraphs: ['Too many requests came from your network. Try again in a minute.'] }),
  foreign: () => ({
    title: 'That did not come from this page',
    paragraphs: ['The form was sent from another site. Open your link again.'],
  }),
  scope: word => (isScope(word) ? scopeMeanings[word] : word),
};

const germanScopes: Readonly<Record<Scope, string>> = {
  email: 'E-Mail-Adresse',
  personal: 'Angaben zur Person (Alter, Geschlecht, Größe, Gewicht) und zu den Ringen',
  daily: 'Schlaf, Aktivität, Erholung, Stress und die anderen Werte eines Tages',
  heartrate: 'Herzfrequenz rund um die Uhr',
  workout: 'Trainings',
  tag: 'Markierungen und Notizen',
  session: 'Angeleitete und aufgezeichnete Momente',
  spo2Daily: 'Sauerstoffsättigung im Schlaf',
};

const german: Texts = {
  invitation: ({ study, contact }) => ({
    title: `${study}: die Daten Ihres Rings teilen`,
    paragraphs: [`${study} bittet Sie, die Daten Ihres Rings zu teilen.`, `Wer fragt und Ihre Fragen beantwortet: ${contact}`],
  }),
  dataHeading: 'Welche Daten',
  dataNote: ({ host }) =>
    `Sie melden sich bei ${host} an und können dort abwählen, was Sie nicht teilen möchten. Ihr Passwort sieht hier niemand. Von da an werden vergangene und neue Daten gelesen, bis Sie widerrufen.`,
  withdrawHeading: 'Wie Sie widerrufen',
  withdrawNote: ({ host, contact }) =>
    `Die Teilnahme ist freiwillig. Am Ende erhalten Sie einen Link, mit dem Sie jederzeit und ohne Angabe von Gründen widerrufen können. Sie können den Zugang auch bei ${host} beenden oder sich an ${contact} wenden. Danach werden keine Daten mehr gelesen. Was vorher gelesen wurde, bleibt, bis die Studie es löscht: Bitten Sie dort darum.`,
  studyHeading: ({ study }) => `Was ${study} dazu sagt`,
  pageChanged: 'Was auf dieser Seite steht, hat sich geändert, seit Sie sie geöffnet haben. Bitte lesen Sie es noch einmal.',
  agree: 'Ich bin einverstanden: weiter zur Anmeldung',
  disagree: 'Wenn Sie nicht einverstanden sind, schließen Sie diese Seite. Es wird nichts gespeichert.',
  connected: ({ study }) => ({
    title: 'Vielen Dank',
    paragraphs: [`${study} kann nun die Daten Ihres Rings lesen, die Sie erlaubt haben.`],
  }),
  allowedHeading: 'Erlaubt haben Sie',
  askedHeading: 'Gefragt wurden Sie nach',
  askedNote: ({ host }) => `${host} hat nicht mitgeteilt, was davon Sie erlaubt haben. Was Sie abgewählt haben, wird nicht gelesen.`,
  withdrawLinkHeading: 'Ihr Link zum Widerrufen',
  withdrawLinkNote: 'Bewahren Sie diesen Link auf, und geben Sie ihn niemandem. Er wird nur hier gezeigt:',
  pending: ({ host }) => ({
    title: 'Einen Moment',
    paragraphs: [`${host} braucht etwas länger. Diese Seite sieht in einigen Sekunden von selbst wieder nach.`],
  }),
  closed: ({ contact }) => ({
    title: 'Dieser Link gilt nicht',
    paragraphs: [
      'Er wurde schon benutzt, ist abgelaufen oder zurückgezogen, oder es fehlt ein Teil.',
      `Bitten Sie um einen neuen: ${contact}`,
    ],
  }),
  refused: () => ({
    title: 'Es wurde nichts geteilt',
    paragraphs: ['Sie haben den Zugang nicht erlaubt, und es wurde nichts gespeichert. Ihre Einladung gilt weiter.'],
  }),
  failed: ({ contact }) => ({
    title: 'Das hat nicht geklappt',
    paragraphs: [
      'Es wurde nichts gespeichert. Bitte versuchen Sie es in einigen Minuten noch einmal.',
      `Wenn es wieder geschieht: ${contact}`,
    ],
  }),
  textAway: ({ study, contact }) => ({
    title: 'Diese Einladung kann jetzt nicht gezeigt werden',
    paragraphs: [
      `Was Sie für ${study} vorher lesen sollen, kann zurzeit nicht gezeigt werden. Es wurde nichts gespeichert, und Ihre Einladung gilt weiter.`,
      `Bitte sagen Sie es der Studie, und öffnen Sie Ihren Link später noch einmal: ${contact}`,
    ],
  }),
  unfinished: ({ host }) => ({
    title: 'Die Anmeldung wurde nicht abgeschlossen',
    paragraphs: [`${host} hat die Anmeldung nicht abgeschlossen, und es wurde nichts gespeichert. Ihre Einladung gilt weiter.`],
  }),
  notAdmitted: ({ study, host, contact }) => ({
    title: 'Sie wurden nicht eingelassen',
    paragraphs: [
      `${host} hat Sie nicht eingelassen, und es wurde nichts gespeichert. Das liegt nicht an Ihnen: ${study} wurde benachrichtigt. Ihre Einladung gilt weiter.`,
      `Wenn es wieder geschieht: ${contact}`,
    ],
  }),
  elsewhere: ({ contact }) => ({
    title: 'Diese Anmeldung hat nicht hier begonnen',
    paragraphs: [
      'Sie hat in einem anderen Browser oder vor zu langer Zeit begonnen, oder diese Seite wurde seither neu gestartet. Durch das Öffnen dieser Seite wird nichts gespeichert. Öffnen Sie den Link Ihrer Einladung noch einmal, und bleiben Sie in einem Browser.',
      `Wenn dieser Link nicht mehr gilt, haben Sie sich vielleicht schon angemeldet. Fragen Sie nach, auch nach einem Link zum Widerrufen: ${contact}`,
    ],
  }),
  enrolled: ({ study, contact }) => ({
    title: 'Sie nehmen schon teil',
    paragraphs: [
      `Sie haben sich bei ${study} schon angemeldet, und das gilt weiter. Es wurde nichts doppelt gespeichert, und Sie müssen nichts tun.`,
      `Wenn das nicht stimmt: ${contact}`,
    ],
  }),
  unread: ({ study, contact }) => ({
    title: 'Sie haben schon einmal teilgenommen',
    paragraphs: [
      `Sie haben sich bei ${study} schon angemeldet, und Ihre Daten werden jetzt nicht gelesen: Sie haben widerrufen, oder der Zugang ist beendet. Diesmal wurde nichts gespeichert.`,
      `Um wieder teilzunehmen, bitten Sie um einen neuen Link zu Ihrer ersten Anmeldung: ${contact}`,
    ],
  }),
  another: ({ host, contact }) => ({
    title: 'Es hat sich jemand anders angemeldet',
    paragraphs: [
      `Diese Einladung ist für eine Person, die schon teilgenommen hat und bei ${host} ein anderes Konto hatte. Es wurde nichts gespeichert.`,
      `Melden Sie sich bei ${host} ab, und öffnen Sie dann Ihre Einladung noch einmal. Wenn das nicht stimmt: ${contact}`,
    ],
  }),
  unrecognised: ({ host, contact }) => ({
    title: 'Sie wurden nicht erkannt',
    paragraphs: [
      'Diese Einladung ist für eine Person, die schon teilgenommen hat, und niemand konnte feststellen, ob Sie das sind. Es wurde nichts gespeichert.',
      `Öffnen Sie Ihre Einladung noch einmal, und lassen Sie bei ${host} „${germanScopes.personal}“ (personal) angekreuzt. Wenn Sie das getan haben: ${contact}`,
    ],
  }),
  again: 'Zurück zur Einladung',
  withdrawal: ({ study, contact }) => ({
    title: `Die Teilnahme an ${study} widerrufen`,
    paragraphs: [
      'Wenn Sie widerrufen, werden Ihre Daten nicht mehr gelesen, und der Zugang wird zurückgegeben.',
      `Was vorher gelesen wurde, bleibt, bis die Studie es löscht. Bitten Sie darum: ${contact}`,
    ],
  }),
  withdraw: 'Widerrufen',
  withdrawn: ({ study, contact }) => ({
    title: 'Sie haben widerrufen',
    paragraphs: [
      `${study} liest Ihre Daten nicht mehr und wurde benachrichtigt.`,
      `Damit gelöscht wird, was vorher gelesen wurde: ${contact}`,
    ],
  }),
  notTakenBack: ({ host }) =>
    `${host} hat nicht bestätigt, dass der Zugang zurückgegeben ist. Wo er dort noch steht, können Sie ihn entfernen. Benutzt wird er nicht mehr.`,
  giveBack: 'Noch einmal versuchen, den Zugang zurückzugeben',
  ended: ({ study, contact }) => ({
    title: 'Ihre Daten werden nicht mehr gelesen',
    paragraphs: [
      `${study} hat das beendet; es gibt nichts mehr zu widerrufen.`,
      `Damit gelöscht wird, was vorher gelesen wurde: ${contact}`,
    ],
  }),
  notWithdrawn: ({ contact }) => ({
    title: 'Das hat nicht geklappt',
    paragraphs: [
      'Ihr Widerruf ist vielleicht nicht abgeschlossen. Bitte öffnen Sie Ihren Link in einigen Minuten noch einmal: Er zeigt, ob noch etwas zu tun ist.',
      `Wenn es wieder geschieht: ${contact}`,
    ],
  }),
  busy: () => ({
    title: 'Bitte warten Sie',
    paragraphs: ['Aus Ihrem Netz kamen zu viele Anfragen. Versuchen Sie es in einer Minute noch einmal.'],
  }),
  foreign: () => ({
    title: 'Das kam nicht von dieser Seite',
    paragraphs: ['Das Formular wurde von einer anderen Seite gesendet. Öffnen Sie Ihren Link noch einmal.'],
  }),
  scope: word => (isScope(word) ? germanScopes[word] : word),
};

export const texts: Readonly<Record<Language, Texts>> = { en: english, de: german };

/** The language that a browser wants most of those that there are (Accept-Language); English where it wants none of them. */
export function chooseLanguage(header: string | undefined): Language {
  const wanted = (header ?? '')
    .slice(0, 1_000)
    .split(',')
    .flatMap(part => {
      const [, tag = '', q = '1'] = /^\s*([a-zA-Z]+)[^;]*(?:;\s*q=([\d.]+))?\s*$/.exec(part) ?? [];
      const language = languages.find(known => known === tag.toLowerCase());
      return language && Number(q) > 0 ? [{ language, q: Number(q) }] : [];
    });
  return wanted.sort((a, b) => b.q - a.q)[0]?.language ?? 'en';
}
