import type { Mapping } from '../mapping.ts';
import type { LedgerEntry } from '../sql.ts';
import type { Confirmed, DocumentPage, Transaction } from '../write/write-batch.ts';
import { type KnownDocument, nothingWritten, type WriteResult } from '../write-result.ts';
import { type Existing, isReadAgain, keyOf } from './load-existing.ts';
import type { ParsedDocument, RejectedDocument } from './parse-document.ts';

/** A version to be appended. */
export interface Addition {
  page: DocumentPage;
  document: ParsedDocument;
}

/** What is to be done for the pages of one resource, each added after those before it. */
export class PagePlan {
  /** Of each page. */
  readonly counts: WriteResult[] = [];
  /** Rejected documents and tombstones. */
  readonly ledger: LedgerEntry[] = [];
  readonly #confirmations: Confirmations;
  readonly #mapping: Mapping;
  readonly #existing: Existing;
  /** By key what becomes of a document; undefined: it is removed. */
  readonly #decisions = new Map<string, Addition | undefined>();
  /** What the answers of this group have settled of a document: by storing, removing, or finding it unchanged. */
  readonly #settled = new Map<string, Confirmed[]>();

  constructor(confirmations: Confirmations, mapping: Mapping, existing: Existing) {
    this.#confirmations = confirmations;
    this.#mapping = mapping;
    this.#existing = existing;
  }

  /** The stored versions that leave. */
  get replaced(): { userId: string; id: string; day: string | null; sk: number }[] {
    return [...this.#decisions.keys()].flatMap(key => this.#existing.stored.get(key) ?? []);
  }

  get additions(): Addition[] {
    return [...this.#decisions.values()].flatMap(addition => addition ?? []);
  }

  add(page: DocumentPage): void {
    const count = nothingWritten();
    this.counts.push(count);
    for (const document of page.documents) this.#store(page, document, count);
    for (const document of page.known ?? []) this.#store(page, document, count);
    for (const id of page.removed) this.#remove(page, id, count);
    for (const rejected of page.rejected) this.#reject(page, rejected, count);
    if (page.missing) for (const id of page.missing.ids) this.#suspect(page, id, page.missing.seenAt);
    this.#forgetReadAgain(page);
  }

  #store(page: DocumentPage, document: ParsedDocument | KnownDocument, count: WriteResult): void {
    const { id, hash } = document;
    const key = keyOf(page.userId, id);
    count.came.push({ id, hash });
    this.#forgetSuspicion(page, key, id);
    const current = this.#current(key);
    if (page.requestedAt < this.#newestOf(page, key, id, isParsed(document) ? document.day : undefined)) {
      // A known document may have come with a later page than the moment of its answer tells.
      if (isParsed(document) || current?.hash === hash) count.outdated++;
      else count.differing++;
      return;
    }
    if (current?.hash === hash) {
      count.unchanged++;
    } else if (!isParsed(document)) {
      count.differing++;
      return;
    } else {
      count.changes.push({ id, command: current ? 'update' : 'create' });
      if (this.#existing.stored.get(key)?.hash === hash) this.#decisions.delete(key);
      else this.#decisions.set(key, { page, document });
      count.stored++;
      count.samples += document.samples;
    }
    this.#finish(page, key, id);
    if (this.#existing.tombstones.delete(key)) this.ledger.push({ table: 'sync.tombstones', key: this.#ledgerKey(page, id) });
    this.#forgetRejected(page, key, id);
  }

  #remove(page: DocumentPage, id: string, count: WriteResult): void {
    const key = keyOf(page.userId, id);
    const current = this.#current(key);
    // That it is absent from some days, as a newer answer says, does not contradict its end.
    const newest = this.#newestOf(page, key, id, NO_DAY);
    if (page.requestedAt < newest) {
      count.outdated++;
      return;
    }
    if (isElsewhere(page.absentFrom, current?.day)) {
      // It stays where it is, and no older answer may bring it under these days.
      this.#finish(page, key, id, page.absentFrom);
      count.outdated++;
      return;
    }
    this.#forgetSuspicion(page, key, id);
    if (current) count.changes.push({ id, command: 'delete' });
    this.#decisions.set(key, undefined);
    count.removed++;
    // Under other days an older answer may bring it; from those that it is absent from, what was confirmed keeps it away.
    const removedAt = page.absentFrom
      ? Math.max(newest, Math.min(page.requestedAt, this.#confirmations.oldestAnswer() - 1))
      : page.requestedAt;
    this.#existing.tombstones.set(key, removedAt);
    this.#finish(page, key, id, page.absentFrom);
    this.ledger.push({ table: 'sync.tombstones', key: this.#ledgerKey(page, id), row: { removed_at: removedAt } });
    this.#forgetRejected(page, key, id);
  }

  #reject(page: DocumentPage, { id, reason, text, day }: RejectedDocument, count: WriteResult): void {
    const { requestedAt, range } = page;
    const { refused } = this.#existing;
    const key = keyOf(page.userId, id);
    this.#forgetSuspicion(page, key, id);
    const isOutdated = requestedAt < this.#newestOf(page, key, id, day);
    // What another answer has brought too is missing from this one all the same.
    if (day === null && !isOutdated) count.undated++;
    if (isOutdated || requestedAt < (refused.get(key) ?? 0)) {
      count.outdated++;
      return;
    }
    refused.set(key, requestedAt);
    count.rejected++;
    this.ledger.push({
      table: 'sync.rejected',
      key: this.#ledgerKey(page, id),
      row: { reason, document: text, fetched_at: requestedAt, day, start_at: range?.startAt ?? null, end_at: range?.endAt ?? null },
    });
  }

  /** A first proof, unless another answer has brought the document meanwhile: a newer one, or under days that this one does not tell of. */
  #suspect(page: DocumentPage, id: string, seenAt: number): void {
    const key = keyOf(page.userId, id);
    const current = this.#current(key);
    if (!current || isElsewhere(page.absentFrom, current.day)) return;
    if (page.requestedAt < this.#newestOf(page, key, id, current.day)) return;
    this.#existing.suspected.add(key);
    this.ledger.push({ table: 'sync.suspicions', key: this.#missingKey(page, id), row: { first_seen_at: seenAt } });
  }

  /** What a complete reading would have brought, were it still there. */
  #forgetReadAgain(page: DocumentPage): void {
    for (const known of this.#existing.earlier) {
      // What this group has refused again, for whichever range, is there.
      const isLeft = known.userId === page.userId && this.#existing.refused.get(keyOf(known.userId, known.id)) === known.refusedAt;
      if (isLeft && isReadAgain(known, page)) this.ledger.push({ table: 'sync.rejected', key: this.#ledgerKey(page, known.id) });
    }
  }

  /** What is stored once this group is, as far as it is planned. */
  #current(key: string): { hash: string; day: string | null } | undefined {
    return this.#decisions.has(key) ? this.#decisions.get(key)?.document : this.#existing.stored.get(key);
  }

  /**
   * The moment of the newest answer that has settled a document.
   * @param day under which it comes now: what says that it is absent from other days settles nothing of that
   */
  #newestOf(page: DocumentPage, key: string, id: string, day?: string | null): number {
    const { stored, tombstones } = this.#existing;
    const confirmed = [...(this.#settled.get(key) ?? []), ...this.#confirmations.findConfirmed(this.#mapping.table, page.userId, id)];
    return Math.max(
      stored.get(key)?.fetchedAt ?? 0,
      tombstones.get(key) ?? 0,
      ...confirmed.map(settled => (isElsewhere(settled.absentFrom, day) ? 0 : settled.moment)),
    );
  }

  #finish({ userId, requestedAt }: DocumentPage, key: string, id: string, absentFrom?: Confirmed['absentFrom']): void {
    const confirmed = { moment: requestedAt, absentFrom };
    this.#settled.set(key, [...(this.#settled.get(key) ?? []), confirmed]);
    this.#confirmations.confirm(this.#mapping.table, userId, id, confirmed);
  }

  #ledgerKey({ userId }: DocumentPage, id: string) {
    return { user_id: userId, collection: this.#mapping.resource.name, id };
  }

  #forgetRejected(page: DocumentPage, key: string, id: string): void {
    if ((this.#existing.refused.get(key) ?? Number.POSITIVE_INFINITY) > page.requestedAt) return;
    this.ledger.push({ table: 'sync.rejected', key: this.#ledgerKey(page, id) });
    this.#existing.refused.delete(key);
  }

  /** It came, or it is gone: in neither case a second proof is waited for. */
  #forgetSuspicion(page: DocumentPage, key: string, id: string): void {
    if (!this.#existing.suspected.delete(key)) return;
    this.ledger.push({ table: 'sync.suspicions', key: this.#missingKey(page, id) });
  }

  #missingKey(page: DocumentPage, id: string) {
    const { user_id, collection } = this.#ledgerKey(page, id);
    return { user_id, collection, kind: 'missing', object_id: id };
  }
}

const isParsed = (document: KnownDocument | ParsedDocument): document is ParsedDocument => 'values' in document;

type Confirmations = Pick<Transaction, 'findConfirmed' | 'confirm' | 'oldestAnswer'>;

/** It lies outside of all days that something can be absent from. */
const NO_DAY = '';

const isElsewhere = (absentFrom: Confirmed['absentFrom'], day: string | null | undefined) =>
  absentFrom !== undefined && typeof day === 'string' && (day < absentFrom.from || day > absentFrom.to);
