/** The command with which a person signs in, for the first time or again. */
export const loginCommand = (name: string): string => `ringneck account login ${name}`;

/** The command that gives an account what it is read with: where the client is set its person signs in, else there is a token to give. */
export const accessCommand = (name: string, { signIn }: { signIn: object | null }): string =>
  signIn ? loginCommand(name) : `ringneck account add ${name}`;

/** What the rooms say that do not know the settings. */
export const ACCESS_COMMANDS = 'ringneck account login NAME, or with a token ringneck account add NAME';

const AGAIN = 'sign in again: ';

/** Why an account is parked whose sign-in the service has ended, with the command that mends it. */
export const signInAgain = (name: string): string => AGAIN + loginCommand(name);

export const mustSignInAgain = (reason: string | null): boolean => reason?.startsWith(AGAIN) ?? false;
