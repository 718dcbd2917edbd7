import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { WebhookEvent } from '../../schema/webhook.ts';
import { DataFolder } from '../../src/app/data-folder.ts';
import { webhookOf } from '../../src/app/up.ts';
import { readSettings } from '../../src/base/config.ts';
import { TryLaterError } from '../../src/base/errors.ts';
import { silentLog } from '../../src/base/log.ts';
import type { WebhookOptions } from '../../src/receiver/webhook.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
let folders = 0;

async function open(env: Record<string, string> = {}) {
  const settings = readSettings({ RINGNECK_DATA: join(folder, `d${++folders}`), ...env });
  const kept = await DataFolder.open({ settings, log: silentLog });
  onTestFinished(() => kept.close());
  return kept;
}

/** A promise that is settled by hand. */
function gate(): { opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>(resolve => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

test('while the folder is closed every command asks to try later, and what goes on begins again afterwards', async () => {
  const kept = await open();
  const order: string[] = [];
  for (const name of ['first', 'second']) {
    await kept.during(async () => {
      order.push(`${name} begins`);
      return () => order.push(`${name} ends`);
    });
  }
  const { app, commands } = kept;
  const wait = gate();
  const closed = app.withExclusive(async () => {
    order.push('closed');
    await wait.opened;
    return 'done';
  });
  await expect(commands.listAccounts({})).rejects.toThrow(TryLaterError);
  await expect(commands.eraseAccount({ name: 'ada' })).rejects.toThrow('an account is being erased');
  await expect((async () => app.withExclusive(async () => {}))()).rejects.toThrow(TryLaterError);
  expect(() => kept.app).toThrow(TryLaterError);
  wait.open();
  expect(await closed).toBe('done');
  expect(order).toEqual(['first begins', 'second begins', 'second ends', 'first ends', 'closed', 'first begins', 'second begins']);
  expect(kept.app).not.toBe(app);
  expect(await commands.listAccounts({})).toEqual([]);
  await kept.end();
  expect(order.slice(7)).toEqual(['second ends', 'first ends']);
});

test('work that fails is told to who asked for it, and the folder is open again', async () => {
  const kept = await open();
  const failing = kept.app.withExclusive(async () => {
    throw new Error('no room');
  });
  await expect(failing).rejects.toThrow('no room');
  expect(await kept.commands.listAccounts({})).toEqual([]);
});

test('what is to end waits for who has the folder closed, and opens it no more', async () => {
  const kept = await open();
  const wait = gate();
  const closed = kept.app.withExclusive(() => wait.opened);
  const ended = kept.end();
  wait.open();
  await Promise.all([closed, ended]);
  expect(() => kept.app).toThrow(TryLaterError);
});

test('a sign-in that is being made or renewed is known as the folder closes for a while too: the end waits for it', async () => {
  const kept = await open();
  const answer = gate();
  void kept.app.inHand.add(answer.opened);
  const closed = kept.app.withExclusive(async () => {});
  expect(kept.findSignInsInHand()).toBeDefined();
  answer.open();
  await closed;
  expect(kept.findSignInsInHand()).toBeUndefined();
});

test('who closes the folder for good waits for what whoever has it closed for a while waits for', async () => {
  const kept = await open();
  const answer = gate();
  const order: string[] = [];
  void kept.app.inHand.add(answer.opened.then(() => order.push('answered')));
  const closed = kept.app.withExclusive(async () => {});
  const ended = kept.close().then(() => order.push('ended'));
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
  answer.open();
  await Promise.all([closed, ended]);
  expect(order).toEqual(['answered', 'ended']);
});

test('alarms that wait behind a slow command are told after a move and an erasing, but for those of who was erased', async () => {
  const [go, told] = [join(folder, 'go'), join(folder, 'told')];
  const program = join(folder, 'tell.sh');
  writeFileSync(program, '#!/bin/sh\nwhile [ ! -e "$1" ]; do sleep 0.05; done\necho "$RINGNECK_USER: $RINGNECK_MESSAGE" >> "$2"\n');
  chmodSync(program, 0o700);
  const kept = await open({ RINGNECK_ON_FAILURE: `${program} ${go} ${told}` });
  for (const name of ['ada', 'ben']) await kept.commands.addAccount({ name, token: `token-of-${name}` });
  for (const user of ['zoe', 'ada', 'ben', 'cleo']) kept.app.onFailure({ reason: 'sign_in_ending', user, message: `${user} ends` });
  await kept.commands.moveAccount({ from: 'ada', to: 'anna' });
  await kept.commands.eraseAccount({ name: 'ben' });
  kept.app.onFailure({ reason: 'sign_in_ending', user: 'ada', message: 'another ada ends' });
  writeFileSync(go, '');
  await kept.close();
  expect(readFileSync(told, 'utf8').trim().split('\n')).toEqual([
    'zoe: zoe ends',
    'anna: ada ends (ada is called anna by now)',
    'cleo: cleo ends',
    'ada: another ada ends',
  ]);
});

test('when it cannot be opened again that is said', async () => {
  const kept = await open();
  let begun = 0;
  await kept.during(async () => {
    if (begun++) throw new Error('the port is in use');
    return () => undefined;
  });
  await kept.app.withExclusive(async () => {});
  await expect(kept.broken).rejects.toThrow('the data folder cannot be opened again: the port is in use');
});

test('an event that comes while the folder is closed is not accepted, and so is sent again', async () => {
  const accepted: string[] = [];
  const webhook: WebhookOptions = {
    verificationToken: 'word',
    secrets: ['secret'],
    headerPrefix: 'x-service-',
    windowMs: 0,
    accept: async ({ object_id }) => void accepted.push(object_id),
    isGone: () => true,
    now: Date.now,
    log: silentLog,
  };
  const open = { webhook };
  let following: { webhook: WebhookOptions } | undefined = open;
  const served = webhookOf(() => following)!;
  const event = (object_id: string): WebhookEvent => ({
    event_type: 'update',
    data_type: 'sleep',
    object_id,
    event_time: '2025-01-02T08:00:00+01:00',
    user_id: 'x',
  });
  await served.accept(event('before'), 'its signature');
  following = undefined;
  await expect(served.accept(event('meanwhile'), 'its signature')).rejects.toThrow(TryLaterError);
  expect(served.isGone?.(event('meanwhile'))).toBe(false);
  following = open;
  await served.accept(event('after'), 'its signature');
  expect(accepted).toEqual(['before', 'after']);
});
