import { type IncomingMessage, request } from 'node:http';
import type { Line } from './command.ts';

/** Sends one request over a socket; done when its answer begins. The signal ends the answer too. */
export function send(
  address: string,
  { method, path, body, signal }: { method: 'GET' | 'POST'; path: string; body?: unknown; signal: AbortSignal },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    // No agent: a connection that is kept would keep the owner from closing its control socket.
    request({ socketPath: address, method, path, headers, signal, agent: false }, resolve)
      .on('error', reject)
      .end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** All of an answer. */
export async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += part;
  return text;
}

/** The lines of an answer as they come; what follows the last line break is no line. */
export async function* linesOf(response: IncomingMessage): AsyncGenerator<Line> {
  let rest = '';
  for await (const part of response.setEncoding('utf8')) {
    const lines = `${rest}${part}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield JSON.parse(line);
  }
}
