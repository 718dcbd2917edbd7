import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { UsageError } from '../../../src/base/errors.ts';
import { openWebhookClient } from '../../../src/service/webhooks/client.ts';
import { makeFolder } from './webhook-service.ts';

const KEY = 'a key of at least 16 characters';

test('the first start makes a client, later ones know it and show its secret no more', () => {
  const folder = makeFolder();
  const first = openWebhookClient(folder, KEY, false);
  expect([first.id, first.secret, first.isNew]).toEqual([
    expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4/),
    expect.stringMatching(/^rs_[\w-]{43}$/),
    true,
  ]);
  const second = openWebhookClient(folder, KEY, false);
  expect([second.id, second.secret, second.isNew]).toEqual([first.id, first.secret, false]);
});

test('the secret lies sealed in a file of its owner', () => {
  const folder = makeFolder();
  const { secret } = openWebhookClient(folder, KEY, false);
  const path = join(folder, 'client.json');
  expect(readFileSync(path, 'utf8')).not.toContain(secret.slice(3));
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a new secret replaces the former one; the client stays the same', () => {
  const folder = makeFolder();
  const old = openWebhookClient(folder, KEY, false);
  const fresh = openWebhookClient(folder, KEY, true);
  expect([fresh.id, fresh.isNew]).toEqual([old.id, true]);
  expect(fresh.isAuthentic(old.id, old.secret)).toBe(false);
  expect(fresh.isAuthentic(old.id, fresh.secret)).toBe(true);
  expect(openWebhookClient(folder, KEY, false).secret).toBe(fresh.secret);
});

test('only id and secret together are authentic', () => {
  const client = openWebhookClient(makeFolder(), KEY, false);
  const { id, secret } = client;
  expect(client.isAuthentic(id, secret)).toBe(true);
  for (const [givenId, givenSecret] of [
    [id, ''],
    ['', secret],
    ['', ''],
    [undefined, undefined],
    [id, undefined],
    [secret, id],
    [id, secret.toUpperCase()],
    [[id], [secret]],
    [`${id} `, secret],
  ])
    expect([givenId, givenSecret, client.isAuthentic(givenId, givenSecret)]).toEqual([givenId, givenSecret, false]);
});

test('another key is refused with what to do, and --new-tokens helps', () => {
  const folder = makeFolder();
  openWebhookClient(folder, KEY, false);
  const open = () => openWebhookClient(folder, 'another key of 16 characters', false);
  expect(open).toThrow(UsageError);
  expect(open).toThrow('was sealed with another key: set RINGNECK_SECRET_KEY to it');
  expect(openWebhookClient(folder, 'another key of 16 characters', true).isNew).toBe(true);
  expect(open).not.toThrow();
});

test('a file that cannot be read is named, not replaced', () => {
  const folder = makeFolder();
  writeFileSync(join(folder, 'client.json'), '{"format":1}');
  expect(() => openWebhookClient(folder, KEY, false)).toThrow(/client\.json cannot be read/);
  expect(readFileSync(join(folder, 'client.json'), 'utf8')).toBe('{"format":1}');
});
