import { Owner } from '../../src/app/app.ts';
import { operationsOf } from '../../src/app/commands.ts';
import { type Folder, openSettings } from '../folder.ts';
import { performTask } from '../task.ts';

export interface AddAccountsJob extends Folder {
  users: string[];
}

/** Makes a data folder with accounts, in the order of the server's tokens. */
performTask(async ({ users, ...folder }: AddAccountsJob) => {
  const { settings, log } = openSettings(folder);
  const owner = await Owner.open({ settings, log });
  try {
    const operations = operationsOf(owner);
    for (const [i, name] of users.entries()) await operations.addAccount({ name, token: `token-${i}` });
  } finally {
    await owner.close();
  }
});
