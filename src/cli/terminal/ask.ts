import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { Interrupted } from '../../base/interrupt.ts';
import { note } from './note.ts';

/** One line of who sits at the terminal; empty for Enter and Ctrl-D. @throws Interrupted for Ctrl-C */
export async function askLine(question: string): Promise<string> {
  return (await readLine(question, process.stderr)).trim();
}

/** The same without showing what is typed. */
export async function askHidden(question: string): Promise<string> {
  const hidden = new Writable({ write: (_, __, done) => done() });
  // Before it only what is shown would be asked.
  const line = readLine('', hidden);
  process.stderr.write(question);
  try {
    return await line;
  } finally {
    note('');
  }
}

async function readLine(question: string, output: NodeJS.WritableStream): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output, terminal: true });
  prompt.setPrompt(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      prompt.once('line', resolve).once('close', () => resolve(''));
      prompt.once('SIGINT', () => reject(new Interrupted()));
      if (question) prompt.prompt();
    });
  } finally {
    prompt.close();
  }
}

/** Whether the answer is yes; Enter means no, or what is said. */
export async function askWhether(question: string, { enter = false } = {}): Promise<boolean> {
  const answer = await askLine(`${question} ${enter ? '[Y/n]' : '[y/N]'} `);
  return answer === '' ? enter : /^y(es)?$/i.test(answer);
}
