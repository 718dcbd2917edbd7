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
