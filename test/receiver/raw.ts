import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Forgery } from './mutations.ts';

export interface Answer {
  status: number;
  headers: string;
  body: string;
}

export const requestText = (line: string, headers: readonly [string, string][], body: Buffer = Buffer.alloc(0)): Buffer => {
  const head = [line, ...headers.map(([name, value]) => `${name}: ${value}`), `Content-Length: ${body.length}`];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
};

export const post = ({ headers, body }: Pick<Forgery, 'headers' | 'body'>) => requestText('POST /webhook HTTP/1.1', headers, body);

/** HTTP by hand: clients do not send what this test needs to be sent. */
export class RawConnection {
  readonly socket: Socket;
  #received = '';
  #closed = false;
  #wake = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', data => {
      this.#received += data.toString('latin1');
      this.#wake();
    });
    socket.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
    socket.on('error', () => undefined);
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  get closed(): boolean {
    return this.#closed;
  }

  async ask(request: Buffer | string): Promise<Answer | undefined> {
    this.socket.write(request);
    return this.answer();
  }

  /** The next answer; undefined when the connection ends without one. */
  async answer(): Promise<Answer | undefined> {
    for (;;) {
      const found = this.#takeAnswer();
      if (found || this.#closed) return found;
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
  }

  #takeAnswer(): Answer | undefined {
    const end = this.#received.indexOf('\r\n\r\n');
    if (end < 0) return undefined;
    const headers = this.#received.slice(0, end);
    const length = Number(/^content-length: (\d+)/im.exec(headers)?.[1] ?? 0);
    const body = this.#received.slice(end + 4, end + 4 + length);
    if (body.length < length) return undefined;
    this.#received = this.#received.slice(end + 4 + length);
    return { status: Number(headers.slice(9, 12)), headers, body };
  }
}
