import { type Command, InvalidArgumentError } from 'commander';
import type { RateLimit } from '../../service/rate-limit.ts';
import { defaultSettings } from '../../service/settings.ts';
import { type AddressRange, findAddressRange, holdsOnlyCarried } from '../../service/webhooks/callback-guard.ts';
import { controlHelp } from '../../simulator/control-help.ts';
import { createFaultSwitches, type FaultSwitches, faultHelp, WrongFault } from '../../simulator/faults.ts';
import { parseDay, wholeNumber, withExample } from '../options.ts';
import type { ServiceOptions } from '../service/serve-sandbox.ts';

/** What a first start takes for what it is not told. */
const FIRST = { people: 3, seed: 7, from: '2025-01-01' };

/** Where `account login` listens, and the pages of `up` for those who are invited. */
const REDIRECT_URLS = ['http://127.0.0.1:8976/callback', 'http://127.0.0.1:8080/connect/callback'];

export function addService(program: Command): void {
  withExample(
    program
      .command('service')
      .description('serve the health-data service itself, over generated people')
      .option('--people <n>', `how many people (${FIRST.people})`, wholeNumber(1, 10_000))
      .option('--from <day>', `first day of their data (${FIRST.from})`, parseDay)
      .option('--to <day>', 'last day of their data, where the clock stands still (without one they live with the calendar)', parseDay)
      .option('--seed <n>', `which people (${FIRST.seed})`, wholeNumber(0, 4_294_967_295))
      .option('--port <port>', 'where to listen; 0 picks a free port', wholeNumber(0, 65_535), 4000)
      .option('--host <host>', 'where to listen', '127.0.0.1')
      .option('--json', 'print people, tokens and address as one line of JSON')
      .option('--new-tokens', 'issue new tokens for all people; the previous ones are revoked')
      .option('--page-size <n>', 'documents on a page', wholeNumber(1, 10_000))
      .option('--heart-rate-page-size <n>', 'heart-rate rows on a page', wholeNumber(1, 100_000))
      .option('--rate-limit <n/seconds|off>', `requests per token (${shownRate(defaultSettings.rateLimit)})`, parseRate)
      .option(
        '--app-rate-limit <n/seconds|off>',
        `authorised requests of all tokens together (${shownRate(defaultSettings.appRateLimit)})`,
        parseRate,
      )
      .option(
        '--redirect-url <url>',
        `where people who sign in may be sent back to, to the letter (may be repeated; ${REDIRECT_URLS.join(' and ')})`,
        addRedirectUrl,
      )
      .option(
        '--token-life <seconds>',
        'how long an access token of a sign-in lives; divided by --time-scale',
        wholeNumber(1, 31_536_000),
        86_400,
      )
      .option('--people-limit <n>', 'how many people may sign in for the client (no limit)', wholeNumber(1, 10_000))
      .option('--inclusive-end', 'count the last day of a range in, for every collection')
      .option('--specification-only', 'serve only the routes of section 4 of the specification')
      .option('--delivery-delay <seconds>', 'from a change to the delivery of its event', wholeNumber(0, 86_400), 30)
      .option(
        '--time-scale <n>',
        'how much faster deliveries are tried again, subscriptions and tokens of a sign-in expire',
        wholeNumber(1, 1_000_000),
        1,
      )
      .option('--allow-callback <cidr>', 'allow callbacks in this block of addresses, public or not (may be repeated)', addRange, [])
      .option(
        '--clock-speed <n>',
        'how fast the people live: 1 as the calendar, 0 not at all; with --to, on from that day',
        wholeNumber(0, 10_000),
      )
      .option('--control-port <port>', 'port of the control route on this machine; 0 picks a free one', wholeNumber(0, 65_535), 0)
      .option('--fault <name[=value]>', 'start with a fault (may be repeated)', addFault)
      .addHelpText(
        'after',
        `\nFaults:\n${faultHelp()}\n\nControl route, in JSON, with the header Authorization: Bearer <its secret>:\n${controlHelp}`,
      ),
    'ringneck service --people 3 --from 2025-01-01 --to 2025-12-31 --seed 7 --port 4000',
  ).action(async (options: Omit<ServiceOptions, 'redirectUrl'> & { redirectUrl?: string[] }) => {
    const { serveSandbox } = await import('../service/serve-sandbox.ts');
    await serveSandbox({ ...options, redirectUrl: options.redirectUrl ?? REDIRECT_URLS }, FIRST);
  });
}

const shownRate = (limit: RateLimit | 'off') => (limit === 'off' ? limit : `${limit.requests}/${limit.seconds}`);

function parseRate(text: string): RateLimit | 'off' {
  if (text === 'off') return text;
  const match = /^([1-9]\d{0,6})\/([1-9]\d{0,5})$/.exec(text);
  if (!match) throw new InvalidArgumentError('expected requests/seconds, like 300/60, or off');
  return { requests: Number(match[1]), seconds: Number(match[2]) };
}

function addRange(text: string, before: AddressRange[]): AddressRange[] {
  const range = findAddressRange(text);
  if (!range) throw new InvalidArgumentError('expected a block of addresses, like 127.0.0.0/8 or fd00::/8');
  if (holdsOnlyCarried(range))
    throw new InvalidArgumentError('these hold IPv4 addresses and open nothing: expected the block of IPv4 itself, like 127.0.0.0/8');
  return [...before, range];
}

function addRedirectUrl(text: string, before: string[] = []): string[] {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || text.includes('#') || url.username || url.password)
    throw new InvalidArgumentError(`expected an address like ${REDIRECT_URLS[0]}, without a fragment or credentials`);
  return [...before, text];
}

/** A fault with its value, as on the command line. */
function addFault(text: string, before: FaultSwitches = createFaultSwitches()): FaultSwitches {
  const [name = '', ...value] = text.split('=');
  try {
    before.set({ [name]: value.length > 0 ? value.join('=') : true });
  } catch (error) {
    if (error instanceof WrongFault) throw new InvalidArgumentError(error.message);
    throw error;
  }
  return before;
}
