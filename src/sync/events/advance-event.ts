import { dataTypesOf } from '../../../schema/resource.ts';
import { dataTypeOf, webhookEvent } from '../../../schema/webhook.ts';
import type { Pipeline } from '../pipeline.ts';
import type { EventJob } from './accept-event.ts';
import { type AcceptedEvent, type EventResult, FORGOTTEN, mayBeEarly, type Tries } from './event-outcome.ts';
import { type EventDelays, EventProcessor } from './process-event.ts';

/** What became of an event, for whoever looks on. */
export interface EventLine {
  /** When its outcome was committed, ISO 8601. */
  at: string;
  event_type: string;
  data_type: string;
  /** The account, where known. */
  user_id: string | null;
  object_id: string;
  outcome: EventResult['outcome'];
  /** From its acceptance until then. */
  ms: number;
  /** How many documents left the warehouse. */
  removedRows?: number;
}

export interface EventOptions {
  delays?: Partial<EventDelays>;
  lookAgainMs?: number;
  /** After each event by which a document was stored that comes with heart rate: heart rate has no events of its own. */
  onHeartRate?(userId: string): void;
  onEvent?(line: EventLine): void;
}

/** The outcomes of a second look that are news. */
const CHANGING: ReadonlySet<string> = new Set(['stored', 'removed']);

/** After which the document of an event that found nothing new is looked at once more. */
const LOOK_AGAIN_MS = 30_000;

/** An event between two steps; `again`: it has its outcome and is only looked at once more. */
export type OpenEvent = EventJob & Partial<Tries> & { again?: boolean };

/** What there is to do after a step: how the event goes on, and how long it is left alone. */
export interface Advance {
  next?: { data: OpenEvent; ms: number };
  /** It has its outcome: it leaves the inbox when the queue holds what is next. */
  isFinished: boolean;
}

/** Takes events from one step to the next, and tells of those that have their outcome. */
export class EventAdvancer {
  readonly #pipeline: Pipeline;
  readonly #options: EventOptions;
  readonly #processor: EventProcessor;
  /** The kinds of data whose documents come with heart rate. */
  readonly #measured: ReadonlySet<string>;

  constructor(pipeline: Pipeline, options: EventOptions) {
    this.#pipeline = pipeline;
    this.#options = options;
    this.#processor = new EventProcessor(pipeline, options);
    this.#measured = new Set(dataTypesOf(pipeline.warehouse.resources.filter(({ bringsHeartRate }) => bringsHeartRate)));
  }

  async advance(data: OpenEvent): Promise<Advance> {
    const { receivedAt, event, misses, absences = 0, failures = 0, refusals = 0, readFrom, routeSaid, again = false } = data;
    const tries = { misses, absences, failures, refusals, readFrom, routeSaid };
    const accepted = { receivedAt, event: webhookEvent.parse(JSON.parse(event)), tries, again };
    const { userId, step } = await this.#processor.process(accepted);
    if ('finished' in step) {
      const { finished } = step;
      if (finished !== FORGOTTEN && (!again || CHANGING.has(finished.outcome))) this.#tell(accepted, userId, finished);
      if (again || !mayBeEarly(accepted, finished, this.#pipeline.serviceClock.now())) return { isFinished: true };
      const second = { ...data, misses: 0, absences: 0, failures: 0, refusals: 0, readFrom: undefined, routeSaid: undefined, again: true };
      return { next: { data: second, ms: this.#options.lookAgainMs ?? LOOK_AGAIN_MS }, isFinished: true };
    }
    return { next: { data: step.tries === tries ? data : { ...data, ...step.tries }, ms: step.again }, isFinished: false };
  }

  #tell({ receivedAt, event }: AcceptedEvent, userId: string | null, { outcome, removedRows }: EventResult): void {
    const now = this.#pipeline.now();
    const line: EventLine = {
      at: new Date(now).toISOString(),
      event_type: event.event_type,
      data_type: event.data_type,
      user_id: userId,
      object_id: event.object_id,
      outcome,
      ms: Math.max(0, now - receivedAt / 1000),
      ...(removedRows === undefined ? {} : { removedRows }),
    };
    this.#pipeline.log.debug(line, 'event finished');
    this.#options.onEvent?.(line);
    if (userId !== null && outcome === 'stored' && this.#measured.has(dataTypeOf(event.data_type))) this.#options.onHeartRate?.(userId);
  }
}
