import type { WireDocument } from '../../schema/resource.ts';
import { type Answer, type Asked, type FaultService, startFaultService } from './fault-service.ts';

/** A service whose documents a test writes by hand, and may change at any time; each path has its own list. */
export interface LiteralService extends Pick<FaultService, 'url' | 'asked' | 'on' | 'close'> {
  documents: Map<string, WireDocument[]>;
  /** Documents by the path `<collection>/*` too; without it that is 404, as on a route that does not exist. */
  withDocumentRoute(...paths: string[]): void;
  /** The requests for documents one by one, as `<collection>/<id>`. */
  listAskedDocuments(): string[];
}

const ROOT = '/v2/usercollection/';

/** Serves these collections, each by day from `start_date` to `end_date`; documents without a day always. */
export async function startLiteralService(...paths: string[]): Promise<LiteralService> {
  const faults = await startFaultService();
  const documents = new Map<string, WireDocument[]>();
  for (const path of paths) {
    documents.set(path, []);
    faults.on(`${ROOT}${path}`, request => collectionAnswer(documents.get(path)!, request));
  }
  const { url, asked, on, close } = faults;
  return {
    url,
    asked,
    on,
    close,
    documents,
    withDocumentRoute(...routes: string[]) {
      for (const path of routes) {
        on(`${ROOT}${path}/*`, request => {
          const id = decodeURIComponent(request.path.split('/').at(-1)!);
          const document = documents.get(path)!.find(candidate => candidate.id === id);
          return document ? { json: document } : NOT_FOUND;
        });
      }
    },
    listAskedDocuments: () => asked.map(({ path }) => path.slice(ROOT.length)).filter(path => path.includes('/')),
  };
}

export const NOT_FOUND: Answer = { status: 404, json: { detail: 'Document not found.' } };

function collectionAnswer(list: readonly WireDocument[], { query }: Asked): Answer {
  const from = query.get('start_date') ?? '';
  const to = query.get('end_date') ?? '9999';
  const isIn = ({ start_day, day = start_day }: WireDocument) => day === undefined || (String(day) >= from && String(day) <= to);
  return { json: { data: list.filter(isIn), next_token: null } };
}
