import { onLost, onSessionOver, PREFIX } from './api.ts';

const KINDS = ['snapshot', 'run', 'event', 'account'] as const;
export type LiveKind = (typeof KINDS)[number];
type Told = { kind: LiveKind } | { state: boolean } | { ask: true } | { lost: true };

const NAME = `ringneck-live${PREFIX}`;
const AGAIN_MS = 5_000;
/** The server says something every 15 s: who says nothing for so long is not there any more. */
const SILENT_MS = 45_000;

const listeners = new Set<(kind: LiveKind) => void>();
const watchers = new Set<(isLost: boolean) => void>();
let isLost = false;
let holds = false;
let channel: BroadcastChannel | undefined;

/** Is told when something else is to be shown. */
export function onLive(listener: (kind: LiveKind) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Is told when the connection is lost, and when it is there again; at once how it stands. */
export function watchConnection(watcher: (isLost: boolean) => void): () => void {
  watchers.add(watcher);
  watcher(isLost);
  return () => void watchers.delete(watcher);
}

function take(told: Told): void {
  if ('kind' in told) for (const listener of listeners) listener(told.kind);
  else if ('state' in told) setLost(told.state);
  else if ('lost' in told) doubt();
  else if (holds) channel?.postMessage({ state: isLost } satisfies Told);
}

function tellAll(told: Told): void {
  channel?.postMessage(told);
  take(told);
}

function setLost(now: boolean): void {
  if (isLost === now) return;
  isLost = now;
  for (const watcher of watchers) watcher(now);
}

/** Begins once somebody is in. One page holds the stream for all of this browser, which gives a host few connections; the next one follows it. */
export function startLive(): void {
  if (channel) return;
  channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data }: MessageEvent<Told>) => take(data);
  channel.postMessage({ ask: true } satisfies Told);
  // The pages that hold no stream, and this one, then ask who they are.
  onSessionOver(() => tellAll({ kind: 'account' }));
  onLost(() => tellAll({ lost: true }));
  // Without https and elsewhere than on this machine there are no locks: each page follows by itself.
  if ('locks' in navigator) void navigator.locks.request(NAME, hold);
  else void hold();
}

/** Never ends: the lock is given on when the page is closed. */
function hold(): Promise<never> {
  holds = true;
  open();
  setInterval(openSilent, AGAIN_MS);
  return new Promise(() => undefined);
}

let wasLost = false;
let source: EventSource | undefined;
let heardAt = 0;

/** Also while it is lost: a link that is cut leaves the next try without an answer, too. */
function openSilent(): void {
  if (Date.now() - heardAt <= SILENT_MS) return;
  wasLost = true;
  tellAll({ state: true });
  open();
}

/** A link that is cut says nothing: a stream over it looks open. Whether it is, only another one shows. */
function doubt(): void {
  if (!holds || isLost) return;
  source?.close();
  wasLost = true;
  tellAll({ state: true });
  setTimeout(open, AGAIN_MS);
}

function open(): void {
  source?.close();
  const opened = new EventSource(`${PREFIX}/api/stream`);
  const hear = () => {
    heardAt = Date.now();
  };
  hear();
  source = opened;
  opened.addEventListener('ping', hear);
  opened.onopen = () => {
    hear();
    tellAll({ state: false });
    // What was published meanwhile is not told again.
    if (wasLost) tellAll({ kind: 'snapshot' });
    wasLost = false;
  };
  opened.onerror = () => {
    wasLost = true;
    tellAll({ state: true });
    // By itself it tries again, unless it was refused: then the session may be over, which the next question tells.
    if (opened.readyState !== EventSource.CLOSED) return;
    tellAll({ kind: 'account' });
    setTimeout(open, AGAIN_MS);
  };
  for (const kind of KINDS) {
    opened.addEventListener(kind, () => {
      hear();
      tellAll({ kind });
    });
  }
}
