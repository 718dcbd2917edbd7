import type { ServerResponse } from 'node:http';

const HEARTBEAT_MS = 2000;
const MOST_WAITING = 1000;

/** The answer to a call, line by line. */
export interface Answer {
  /** An event. While the caller does not read, at most a thousand wait and the oldest give way: the command never waits for its audience. */
  event(event: unknown): void;
  /** The last line; done when the caller has it, or has gone. */
  end(line: string): Promise<void>;
  /** How many events were left out. */
  readonly leftOut: number;
}

/** Begins the answer with a heartbeat, which repeats until its end, so that the caller knows that somebody is there. */
export function beginAnswer(response: ServerResponse): Answer {
  const waiting: string[] = [];
  let leftOut = 0;

  // Once the caller has gone there is nobody to write to, and writing is an error.
  const isOpen = () => !response.destroyed && !response.writableEnded;
  const beat = setInterval(() => {
    if (isOpen() && !response.writableNeedDrain) response.write('{}\n');
  }, HEARTBEAT_MS).unref();
  response.on('close', () => clearInterval(beat));
  response.on('drain', () => {
    while (waiting.length > 0 && isOpen() && !response.writableNeedDrain) response.write(waiting.shift());
  });
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.write('{}\n');

  return {
    event(event) {
      if (!isOpen()) return;
      const line = `${JSON.stringify({ event })}\n`;
      if (!response.writableNeedDrain) {
        response.write(line);
        return;
      }
      waiting.push(line);
      if (waiting.length > MOST_WAITING) leftOut += waiting.splice(0, waiting.length - MOST_WAITING).length;
    },
    async end(line) {
      clearInterval(beat);
      if (!isOpen()) return;
      const gone = new Promise(resolve => response.once('close', resolve));
      response.end(`${waiting.splice(0).join('')}${line}\n`);
      await gone;
    },
    get leftOut() {
      return leftOut;
    },
  };
}
