/** A fault that can be switched on: with the value that it is given, as text. */
interface Fault<Value> {
  /** How it is written, with its value. */
  form: string;
  meaning: string;
  /** The value, undefined when the text is none. Without a text: as the name alone says. */
  parse: (text: string | undefined) => Value | undefined;
}

const fault = <Value>(form: string, meaning: string, parse: Fault<Value>['parse']): Fault<Value> => ({ form, meaning, parse });

const number = (least: number, most: number) => (text: string | undefined) => {
  const value = text !== undefined && /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  return value >= least && value <= most ? value : undefined;
};
const whole = (least: number, most: number) => (text: string | undefined) => {
  const value = number(least, most)(text);
  return Number.isInteger(value) ? value : undefined;
};
const rate = number(0, 1);
/** Of the requests: all where nothing is said. */
const share = (text: string | undefined) => (text === undefined ? 1 : rate(text));
const yes = (text: string | undefined) => (text === undefined || text === 'true' ? true : undefined);

/** Every fault of the sandbox. The option, the control route, their messages and the help derive from this list. */
const declared = {
  status: fault('status=CODE[/RATE]', 'data routes answer this status from 400 to 599; of a share of the requests', text => {
    const [code, of] = (text ?? '').split('/', 2);
    const [status, part] = [whole(400, 599)(code), share(of)];
    return status === undefined || part === undefined ? undefined : { status, rate: part };
  }),
  slow: fault('slow=MS', 'answers come so much later', whole(0, 60_000)),
  truncate: fault('truncate[=RATE]', 'answers break off half-way', share),
  empty: fault('empty', 'answers are 200 and empty', yes),
  'specification-only': fault('specification-only', 'what section 4 does not list is not there', yes),
  lose: fault('lose=RATE', 'a share of the events is never told of', rate),
  repeat: fault('repeat=N', 'each event is told N times', whole(1, 20)),
  delay: fault('delay=SECONDS', 'events come so much later', number(0, 86_400)),
  shuffle: fault('shuffle', 'events come in another order, within 10 s', yes),
  unreadable: fault('unreadable=SECONDS', 'a change can be read only so long after it was told of', number(0, 86_400)),
  'token-slow': fault('token-slow=MS', 'tokens of a sign-in come so much later than they were changed', whole(0, 60_000)),
  'token-error': fault('token-error[=RATE]', 'the token route answers 500 after it has changed the tokens', share),
  'token-truncate': fault('token-truncate[=RATE]', 'answers with tokens break off half-way', share),
} satisfies Record<string, Fault<unknown>>;

type Declared = typeof declared;
type FaultName = keyof Declared;
type ValueOf<Name extends FaultName> = NonNullable<ReturnType<Declared[Name]['parse']>>;

const faultNames = Object.keys(declared) as FaultName[];
const faultForms = faultNames.map(name => declared[name].form);

/** For the help: a line for each fault. */
export const faultHelp = (): string => faultNames.map(name => `  ${declared[name].form.padEnd(24)}${declared[name].meaning}`).join('\n');

/** What is switched on now. */
export interface FaultSwitches {
  get<Name extends FaultName>(name: Name): ValueOf<Name> | undefined;
  /** Switches faults on, each with its value as text or true for its name alone, and with null off: all of them, or none when one is wrong. */
  set(changes: Readonly<Record<string, string | true | null>>): void;
  /** Faults that are on, as they were written; true for a name alone. */
  shown(): Record<string, string | true>;
}

/** A fault that is none, or has a value that it cannot have. */
export class WrongFault extends Error {
  readonly fault: string;

  constructor(fault: string, message: string) {
    super(message);
    this.name = 'WrongFault';
    this.fault = fault;
  }
}

const isFault = (name: string): name is FaultName => Object.hasOwn(declared, name);

function parseFault(name: string, given: string | true | null): unknown {
  if (!isFault(name)) throw new WrongFault(name, `no fault is called ${JSON.stringify(name)}; there are ${faultForms.join(', ')}`);
  if (given === null) return undefined;
  const { form, parse } = declared[name];
  const value = parse(given === true ? undefined : given);
  if (value !== undefined) return value;
  throw new WrongFault(name, `${name}${given === true ? '' : `=${given}`} is no fault: expected ${form}`);
}

export function createFaultSwitches(): FaultSwitches {
  const values = new Map<string, { given: string | true; value: unknown }>();
  return {
    // Only `set` puts values in, each parsed by its own fault.
    get: name => values.get(name)?.value as never,
    set(changes) {
      const parsed = Object.entries(changes).map(([name, given]) => ({ name, given, value: parseFault(name, given) }));
      for (const { name, given, value } of parsed) {
        if (given === null) values.delete(name);
        else values.set(name, { given, value });
      }
    },
    shown: () => Object.fromEntries([...values].map(([name, { given }]) => [name, given])),
  };
}
