import { RingneckError } from '../base/errors.ts';

/** What went wrong at the service's token address, sorted by what is to be done. */
export type SignInErrorKind =
  /** The code or the refresh token is worth nothing any more: the person has to sign in again. */
  | 'invalid_grant'
  /** The service does not take the client: the settings are wrong. */
  | 'client'
  /** The service does not take what it is asked, and does not say that it is for the client. */
  | 'request'
  /** Nothing is known: it may be asked again. */
  | 'unavailable';

/** A request for tokens that came to nothing. The message holds no token and no word of the service's. */
export class SignInError extends RingneckError {
  readonly kind: SignInErrorKind;
  /** Private, so that no log that writes all properties of an error has it. */
  readonly #detail: string | undefined;

  constructor(kind: SignInErrorKind, message: string, options: ErrorOptions & { detail?: string | undefined } = {}) {
    super(message, 1, options);
    this.kind = kind;
    this.#detail = options.detail;
  }

  /** The service's own sentence, for whoever asked. */
  get detail(): string | undefined {
    return this.#detail;
  }
}
