import type { IncomingHttpHeaders } from 'node:http';

/** On every answer: nothing of the console is loaded from elsewhere, framed, kept or told to others. */
export const GUARDED = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const;

/** The addresses under which a console is known. */
export class Addresses {
  /** Where links lead: the outside address, if there is one, else where it listens. */
  readonly url: string;
  readonly #hosts: ReadonlySet<string>;
  readonly #outside: URL | undefined;

  /**
   * @param listening as `http://127.0.0.1:8088`
   * @param outside where it is reached by way of a proxy, with the path that may be in front
   */
  constructor(listening: string, outside: string | undefined) {
    const { host, port } = new URL(listening);
    this.#outside = outside === undefined ? undefined : new URL(outside);
    this.url = outside?.replace(/\/+$/, '') ?? listening;
    this.#hosts = new Set([
      host,
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `[::1]:${port}`,
      ...(this.#outside ? [this.#outside.host] : []),
    ]);
  }

  /** The path in front of all others, without its last slash: '' or `/ring`. */
  get prefix(): string {
    return this.#outside?.pathname.replace(/\/+$/, '') ?? '';
  }

  /** A page from elsewhere may reach this machine by a name of its own (DNS rebinding): only known names are answered. */
  isKnown(host: string | undefined): boolean {
    return host !== undefined && this.#hosts.has(host.toLowerCase());
  }

  /** Whether who asks by this name came by https, which ends at the proxy. */
  isSecure(host: string | undefined): boolean {
    return this.#outside?.protocol === 'https:' && host?.toLowerCase() === this.#outside.host;
  }

  /** Whether what changes something was sent by a page of the console, as browsers say. */
  isOwn({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
    const expected = `${this.isSecure(host) ? 'https' : 'http'}://${host?.toLowerCase()}`;
    return origin?.toLowerCase() === expected && (site === undefined || site === 'same-origin');
  }
}
