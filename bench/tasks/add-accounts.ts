import { App } from '../../src/app/app.ts';
import { commandsOf } from '../../src/app/commands.ts';
import { type Folder, openSettings } from '../folder.ts';
import { performTask } from '../task.ts';

export interface AddAccountsJob extends Folder {
  users: string[];
}

/** Makes a data folder with accounts, in the order of the server's tokens. */
performTask(async ({ users, ...folder }: AddAccountsJob) => {
  const { settings, log } = openSettings(folder);
  const app = await App.open({ settings, log });
  try {
    const commands = commandsOf(() => app);
    for (const [i, name] of users.entries()) await commands.addAccount({ name, token: `token-${i}` });
  } finally {
    await app.close();
  }
});
