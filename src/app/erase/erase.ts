import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Settings } from '../../base/config.ts';
import { ensureDiskReserve, isDiskFull } from '../../base/disk.ts';
import { messageOf, RingneckError, TryLaterError, UsageError, unlessRefused } from '../../base/errors.ts';
import { realPath, writeFileAtomically } from '../../base/files.ts';
import { showCatalogue } from '../../base/lake-address.ts';
import { forgetLines } from '../../base/log.ts';
import { openMirrorTokens } from '../../base/secrets/mirror-tokens.ts';
import { findSecretKey } from '../../base/secrets/secret-key.ts';
import { Secrets } from '../../base/secrets/secrets.ts';
import { tokensOf } from '../../base/secrets/sign-in.ts';
import { warehouseIn } from '../../base/warehouse-file.ts';
import { accountExists, findAccount, findSamePerson, findServiceUserIds } from '../../ledger/accounts.ts';
import { isOfAnother as isOfAnotherPerson } from '../../ledger/unproven.ts';
import { isRedisError } from '../../queue/environment-errors.ts';
import { rememberErased } from '../../sync/events/erased-ids.ts';
import { warehouseId } from '../../sync/runs/runs.ts';
import type { Needle } from '../../warehouse/readers/search.ts';
import { Warehouse } from '../../warehouse/warehouse.ts';
import type { AppOptions, PausedErasing } from '../app-options.ts';
import { removeConsoleSessions } from '../console-sessions.ts';
import { connectControl } from '../control/connect-control.ts';
import { forgetCommonFiles } from '../lake/hold.ts';
import { ensureDisks, lakeOf, placeOf } from '../lake/place.ts';
import { ensureNamed } from '../move/ensure-free.ts';
import { removePersonFiles } from '../person-files/folder.ts';
import { ensureQueueAnswers, ensureRoom, InTheWay, replaceSnapshot, withWarehouse } from '../rewriting.ts';
import { listReaders } from '../take-back.ts';
import { isErasing } from './is-erasing.ts';
import { removeLeftovers } from './leftovers.ts';
import { type Marker, readMarker, removeMarker, writeMarker } from './marker.ts';
import { emptyQueue, removeEvents } from './queue.ts';
import { type EraseReport, isClean, type Searched } from './report.ts';
import { searchFolder } from './search.ts';
import { containsNeedle } from './search-bytes.ts';
import { takeBackErased } from './sign-ins.ts';

type EraseOptions = Pick<AppOptions, 'settings' | 'log' | 'now' | 'onErased' | 'ofErased'>;

const queueKind = ({ settings }: EraseOptions) => (settings.queueUrl ? 'redis' : 'embedded');

/**
 * Erases an account from a folder that this process owns and has closed. Killed at any moment, it is finished when the folder is opened
 * next; where it fails before the new file is in its place all is as before.
 */
export async function eraseAccount(options: EraseOptions, name: string): Promise<EraseReport> {
  const { data } = options.settings;
  writeMarker(data, { format: 1, name, serviceUserIds: null, samePerson: [], isOfAnother: false, removed: {}, queue: queueKind(options) });
  const report = await erase(options).catch((error: unknown) => {
    if (!isErasing(data)) throw error;
    // Begun and not taken back: somebody opened the file in between. Waited for once more.
    return erase(options).catch((again: unknown) => {
      if (!isErasing(data)) throw again;
      const exitCode = again instanceof RingneckError ? again.exitCode : 1;
      throw new RingneckError(`${messageOf(again)}. The erasing is begun: the next command that opens the folder finishes it`, exitCode, {
        cause: again,
      });
    });
  });
  removeMarker(data);
  await forgetCommonFiles(data);
  return report;
}

/** Finishes what a process that was killed had begun (see isErasing), and says what is left to be known of it. */
export async function finishErase(options: EraseOptions): Promise<void> {
  const { data } = options.settings;
  const control = await connectControl(data);
  if (control && control.pid !== process.pid) throw new TryLaterError(`an account is being erased from ${data}; try again in a moment`);
  const report = await erase(options, { goesOn: true }).catch((error: unknown) => {
    const exitCode = error instanceof RingneckError ? error.exitCode : 1;
    const left = isErasing(data) ? 'the next command tries again' : 'nobody was erased: ask for it again';
    throw new RingneckError(
      `the erasing of an account, which was interrupted, cannot be finished (${left}): ${messageOf(error)}`,
      exitCode,
      { cause: error },
    );
  });
  // Whoever began it has no report: this command has it, before the note of it goes.
  options.onErased?.(report);
  if (isClean(report)) options.log.warn('the erasing of an account, which was interrupted, is finished');
  else {
    options.log.error(
      { found: report.found.length, unsearched: report.unsearched.length },
      'an account was erased, but it may still be found',
    );
  }
  removeMarker(data);
  await forgetCommonFiles(data);
}

/** @param goesOn it was begun by somebody else, who has no other word of it: what passes does not take it back */
async function erase(options: EraseOptions, { goesOn = false } = {}): Promise<EraseReport> {
  const { settings, log } = options;
  const { data } = settings;
  const marker = readOurs(options);
  const { name } = marker;
  const secrets = new Secrets({ folder: data, key: settings.secretKey });
  const ended = secrets.listEnded().flatMap(({ name: of, signIn }) => (signIn && of === name ? tokensOf(signIn) : []));
  // Without the key it cannot be read: then it is not searched for.
  const tokens = [...(unlessRefused(() => secrets.listOfAny(name)) ?? []), ...ended];
  const { serviceUserIds, samePerson, isOfAnother, id, removed } = await eraseRows(options, marker).catch(async (error: unknown) => {
    if (goesOn && (error instanceof TryLaterError || isDiskFull(error) || isRedisError(error))) throw error;
    // Where not even that can be done the note stays, and the next who opens the folder goes on.
    await takeBack(options, name).catch(() => undefined);
    throw error;
  });
  const { events, snapshot, readers } = await withWarehouse(options, async warehouse => {
    await rememberIds(options, warehouse, secrets, serviceUserIds);
    const readers = await listReaders(warehouse);
    return { events: await removeEvents(options, warehouse, serviceUserIds), snapshot: await replaceSnapshot(options, warehouse), readers };
  });
  removePersonFiles(data);
  const sign_in_left = await removeTokens(options, { name, isOfAnother, readers });
  // They have the names of those who look at their own data.
  const instead = removeConsoleSessions(data);
  if (instead) log.warn(instead);
  const words: Needle[] = [
    { what: 'name', text: name },
    ...serviceUserIds.map(text => ({ what: 'service id' as const, text })),
    ...tokens.map(text => ({ what: 'token' as const, text })),
  ];
  forgetHistory(data, words);
  forgetLines();
  removeLeftovers(settings);
  const searched = await searchEverywhere(options, words, id).catch((error: unknown) => {
    // All that could be done is done: no command to come shall wait for a search that cannot be made.
    removeMarker(data);
    throw error;
  });
  log.info({ tables: Object.keys(removed).length, found: searched.found.length }, 'an account was erased');
  const searched_for = [...new Set(words.map(({ what }) => what))];
  return { user_id: name, removed, events, snapshot, same_person: samePerson, sign_in_left, searched_for, ...searched };
}

async function searchEverywhere({ settings }: EraseOptions, words: readonly Needle[], id: string): Promise<Searched> {
  const searched = await searchFolder({ settings }, words, id);
  const place = placeOf(settings);
  if (!place) return searched;
  const file = `the lake ${showCatalogue(place.address)}`;
  try {
    const { searchLake } = await import('../../warehouse/readers/search.ts');
    searched.found.push(...(await searchLake(place, words)).map(found => ({ file, ...found })));
  } catch (error) {
    searched.unsearched.push({ file, reason: messageOf(error) });
  }
  return searched;
}

/**
 * @returns whether the service may still list the access
 * @throws InTheWay where they cannot be removed
 */
async function removeTokens(options: EraseOptions, erased: Parameters<typeof takeBackErased>[1]): Promise<boolean> {
  const { data, secretKey: key } = options.settings;
  try {
    const { isLeft, endKeeping } = await takeBackErased(options, erased);
    endKeeping();
    new Secrets({ folder: data, key }).forget(erased.name);
    openMirrorTokens(data).remove(erased.name);
    return isLeft;
  } catch (error) {
    throw new InTheWay(`the tokens of the person cannot be removed: ${messageOf(error)}`, 1, { cause: error });
  }
}

/** Without them the service's next event about the person would be noted as one of somebody unknown. */
async function rememberIds(
  options: EraseOptions,
  warehouse: Warehouse,
  secrets: Secrets,
  serviceUserIds: readonly string[],
): Promise<void> {
  try {
    await rememberErased(warehouse, secrets, serviceUserIds);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    options.log.warn(
      { reason: messageOf(error) },
      'events of the person that still come will be noted in sync.events, under an unknown service user',
    );
  }
}

async function eraseRows(options: EraseOptions, marker: Marker) {
  const { data } = options.settings;
  const { name } = marker;
  const path = warehouseIn(data);
  const { isThere, ...known } = await withWarehouse(options, async warehouse => {
    const serviceUserIds = marker.serviceUserIds ?? (await findServiceUserIds(warehouse, name));
    const samePerson = marker.serviceUserIds ? marker.samePerson : await findSamePerson(warehouse, name);
    const isOfAnother = marker.isOfAnother || isOfAnotherPerson((await findAccount(warehouse, name))?.reason ?? null);
    writeMarker(data, { ...marker, serviceUserIds, samePerson, isOfAnother });
    // While the ledger still knows which of the person's events have their outcome. What cannot be read may be of the person.
    await emptyQueue(options, warehouse, inbox => inbox.rewrite(() => true));
    return { serviceUserIds, samePerson, isOfAnother, id: await warehouseId(warehouse), isThere: await accountExists(warehouse, name) };
  });
  const { lake } = lakeOf(options.settings);
  // Gone: what was interrupted had come further; of a lake it may not have come to its end.
  if (!isThere && !lake) return { ...known, removed: marker.removed };
  ensureRoom(path);
  if (lake) ensureDisks(options.settings);
  const { serviceUserIds, samePerson, isOfAnother } = known;
  const person = { userId: name, serviceUserIds };
  const removed = await Warehouse.erase({ path, lake }, person, () => ensureDiskReserve(dirname(realpathSync(path))));
  const all = { ...removed, ...marker.removed };
  writeMarker(data, { ...marker, serviceUserIds, samePerson, isOfAnother, removed: all });
  return { ...known, removed: all };
}

/** Nothing was begun, unless the new file is in its place. */
async function takeBack(options: EraseOptions, name: string): Promise<void> {
  await withWarehouse(options, async warehouse => {
    if (await accountExists(warehouse, name)) removeMarker(options.settings.data);
  });
}

/** @throws UsageError when nobody of this name was ever added; TryLaterError, RingneckError when it cannot be done now */
export async function ensureErasable(options: EraseOptions, warehouse: Warehouse, name: string): Promise<void> {
  const { data, secretKey: key } = options.settings;
  await ensureNamed(warehouse, name);
  // What cannot be read could not be forgotten either, once the rows have gone. A damaged key hinders nothing: it opens nothing.
  try {
    findSecretKey(data, key);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
  }
  new Secrets({ folder: data, key }).names();
  openMirrorTokens(data).names();
  ensureRoom(warehouse.path);
  await ensureQueueAnswers(options.settings);
}

function readOurs(options: EraseOptions): Marker {
  const marker = readMarker(options.settings.data);
  if (marker.queue === queueKind(options)) return marker;
  throw new UsageError(
    marker.queue === 'redis'
      ? 'an account is being erased whose events wait in Redis: set RINGNECK_QUEUE_URL as it was'
      : 'an account is being erased whose events wait in the embedded queue: unset RINGNECK_QUEUE_URL until that is done',
  );
}

/**
 * An erasing that could not be finished for want of Redis, for a file that cannot be removed, or for who reads the lake, where events may be accepted meanwhile.
 * @throws the error where it is another one, and where nobody knows whose events are not to be kept
 */
export function findPaused(
  { settings, acceptsWhileErasing }: Pick<AppOptions, 'settings' | 'acceptsWhileErasing'>,
  error: unknown,
): PausedErasing {
  const waitsFor = findAwaited(settings, error);
  if (!acceptsWhileErasing || !waitsFor || !isErasing(settings.data)) throw error;
  const { serviceUserIds } = readMarker(settings.data);
  if (!serviceUserIds) throw error;
  return { serviceUserIds, waitsFor, reason: messageOf(error) };
}

function findAwaited({ queueUrl, warehouse }: Settings, error: unknown): PausedErasing['waitsFor'] | undefined {
  if (queueUrl && isRedisError(error)) return 'Redis';
  if (!(error instanceof Error)) return undefined;
  if (warehouse && error.cause instanceof TryLaterError) return 'the lake';
  return error.cause instanceof InTheWay ? 'a file' : undefined;
}

/** What was typed at the prompt of `ringneck sql` may name a person: those lines go. */
function forgetHistory(folder: string, words: readonly Needle[]): void {
  const path = join(folder, 'sql_history');
  if (!existsSync(path)) return;
  const lines = readFileSync(path, 'utf8').split('\n');
  const kept = lines.filter(line => !words.some(word => containsNeedle(Buffer.from(line), word)));
  if (kept.length < lines.length) writeFileAtomically(realPath(path), kept.join('\n'));
}
