import { setImmediate } from 'node:timers/promises';
import type { Mapping } from '../mapping.ts';
import { type ParsedDocument, parseDocument, type RejectedDocument } from './parse-document.ts';

/** Documents parsed between two turns of the event loop. */
const DOCUMENTS_BETWEEN_TURNS = 64;

export interface ParsedDocuments {
  documents: ParsedDocument[];
  rejected: RejectedDocument[];
  samples: number;
}

/** Parses the documents of one answer; others have their turn meanwhile. */
export async function parseDocuments(mapping: Mapping, raws: readonly unknown[]): Promise<ParsedDocuments> {
  const documents: ParsedDocument[] = [];
  const rejected: RejectedDocument[] = [];
  let samples = 0;
  for (let i = 0; i < raws.length; i++) {
    const parsed = parseDocument(mapping, raws[i]);
    if (parsed.document) {
      documents.push(parsed.document);
      samples += parsed.document.samples;
    } else rejected.push(parsed.rejected);
    if (i % DOCUMENTS_BETWEEN_TURNS === DOCUMENTS_BETWEEN_TURNS - 1) await setImmediate();
  }
  return { documents, rejected, samples };
}
