import { messageOf } from '../../base/errors.ts';
import { PreparedQueries } from '../../warehouse/readers/prepared-queries.ts';
import { stepBack } from '../step-back.ts';
import type { Answered, Asked, LetGo } from './questions.ts';

// A process of its own: what it takes of memory and time is not the owner's, and it has no file open for writing.
const [folder = '', path = ''] = process.argv.slice(2);
stepBack();
const queries = new PreparedQueries(folder, path, { memoryLimit: '512MB', threads: 2 });
const answer = (answered: Answered) => process.send?.(answered);

process.on('message', (message: Asked | LetGo) => {
  if ('letGo' in message) return queries.close();
  const { id, name, parameters } = message;
  queries.ask(name, parameters).then(
    columns => answer({ id, columns }),
    error => answer({ id, error: messageOf(error) }),
  );
});
// Who started it is gone.
process.on('disconnect', () => process.exit());
