/** One entry of an HTTPValidationError (section 7). */
export interface Issue {
  loc: readonly string[];
  msg: string;
  type: string;
  input?: unknown;
}

/** An answer other than 200. `detail` goes out as the body's only key. */
export class Problem extends Error {
  readonly status: number;
  readonly detail: string | readonly Issue[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: string | readonly Issue[], headers: Readonly<Record<string, string>> = {}) {
    super(`answered ${status}`);
    this.name = 'Problem';
    this.status = status;
    this.detail = detail;
    this.headers = headers;
  }
}
