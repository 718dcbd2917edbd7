import { RingneckError } from '../../base/errors.ts';

/** A question that is not answered, with the status and what to do instead. */
export class Refusal extends RingneckError {
  readonly status: number;
  readonly help: string;

  constructor(status: number, message: string, help = '') {
    super(message);
    this.status = status;
    this.help = help;
  }
}

const KINDS: Readonly<Record<number, string>> = {
  401: 'session',
  403: 'forbidden',
  404: 'missing',
  409: 'busy',
  410: 'cancelled',
  413: 'large',
  422: 'sql',
  503: 'later',
};

/** How the page tells errors of a status apart. */
export const kindOfStatus = (status: number): string => KINDS[status] ?? 'failed';
