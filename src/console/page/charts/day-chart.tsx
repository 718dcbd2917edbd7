import { extent } from 'd3-array';
import { type ScaleLinear, scaleLinear } from 'd3-scale';
import { area, line } from 'd3-shape';
import { clock, offsetName } from '../parts/format.ts';
import { Plot } from '../parts/plot.tsx';
import { type Bucket, bucketsOf, type Day, gapsOf, heartRange, isOver, offsetAt, stretchesBy, tagName, zonesInView } from './day-model.ts';
import { Hours } from './hours.tsx';

const LEFT = 44;
const RIGHT = 52;
const EVENTS = { y: 16, height: 16 } as const;
const HEART = { y: 54, height: 150 } as const;
const SOURCE = { y: 212, height: 14 } as const;
const MET = { y: 250, height: 56 } as const;
const BASE = MET.y + MET.height;
const HEIGHT = BASE + 22;

type Scale = ScaleLinear<number, number>;

/** A date of the person's own clock, with all of its hours. */
export function DayChart({ day, label }: { day: Day; label: string }) {
  const buckets = bucketsOf(day);
  const place = (x: number, width: number) => Math.round(((x - LEFT) / (width - LEFT - RIGHT)) * (buckets.length - 1));
  return (
    <Plot label={label} count={buckets.length} say={at => tellBucket(day, buckets[at])} placeAt={place}>
      {({ width, cursor }) => (
        <Drawn day={day} buckets={buckets} width={width} at={cursor === null ? null : (buckets[cursor]?.at ?? null)} />
      )}
    </Plot>
  );
}

function Drawn({ day, buckets, width, at }: { day: Day; buckets: readonly Bucket[]; width: number; at: number | null }) {
  const x = scaleLinear([day.start, day.end], [LEFT, width - RIGHT]);
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
      {day.clocks.map(({ start, offset }, index) => (
        <Hours
          key={start}
          x={x}
          from={start}
          until={(day.clocks[index + 1]?.start ?? day.end) - 1}
          offset={offset}
          y={BASE + 16}
          height={BASE - 40}
        />
      ))}
      <NotWorn day={day} x={x} />
      <Events day={day} x={x} />
      <HeartRate day={day} buckets={buckets} x={x} />
      <Sources buckets={buckets} x={x} />
      <Mets day={day} buckets={buckets} x={x} />
      {day.clocks.slice(1).map(({ start, offset }) => (
        <g key={start} data-seam={start}>
          <line class="seam" x1={x(start)} x2={x(start)} y1={EVENTS.y} y2={BASE} />
          <text class="small" x={x(start) + 4} y={10}>
            {offsetName(offset)}
          </text>
        </g>
      ))}
      {at !== null && <line class="cursor" x1={x(at)} x2={x(at)} y1={EVENTS.y} y2={BASE} />}
    </svg>
  );
}

/** Where nothing came for 10 minutes and more. */
function Gaps({ gaps, x, y, height }: { gaps: readonly { start: number; end: number }[]; x: Scale; y: number; height: number }) {
  const [from = 0, until = 0] = x.range();
  return (
    <>
      {gaps.map(({ start, end }) => {
        const left = Math.max(from, x(start));
        return (
          <rect
            key={start}
            class="gap"
            x={left}
            y={y}
            width={Math.min(until, x(end)) - left}
            height={height}
            data-start={start}
            data-end={end}
          />
        );
      })}
    </>
  );
}

function NotWorn({ day: { non_wear, start, end }, x }: { day: Day; x: Scale }) {
  return (
    <>
      {non_wear.start.map((from, index) => {
        const until = Math.min(end, from + (non_wear.seconds[index] ?? 0));
        const left = x(Math.max(start, from));
        return (
          <rect
            key={from}
            class="gap"
            x={left}
            y={HEART.y}
            width={x(until) - left}
            height={SOURCE.y + SOURCE.height - HEART.y}
            data-non-wear={from}
          />
        );
      })}
    </>
  );
}

function Events({ day, x }: { day: Day; x: Scale }) {
  return (
    <g class="events">
      {day.events.map(({ kind, start, end, name }) => {
        const from = x(Math.max(start, day.start));
        // A rest mode without an end goes on.
        const until = end ?? (kind === 'rest_mode' ? day.end : start);
        const width = Math.max(3, x(Math.min(until, day.end)) - from);
        const text = kind === 'tag' ? tagName(name) : name.replaceAll('_', ' ');
        const data = { 'data-event': kind, 'data-start': start };
        if (kind === 'tag')
          return <path key={`${kind} ${start} ${name}`} class="event tag" d={`M${from} ${EVENTS.y + 28}l4 -8h-8z`} {...data} />;
        if (kind === 'rest_mode') {
          return <rect key={`${kind} ${start}`} class="event rest_mode" x={from} y={EVENTS.y + 18} width={width} height={3} {...data} />;
        }
        return (
          <g key={`${kind} ${start} ${name}`}>
            <rect class={`event ${kind}`} x={from} y={EVENTS.y} width={width} height={EVENTS.height} rx={3} {...data} />
            {width > text.length * 6.5 + 8 && (
              <text class="on-event" x={from + 5} y={EVENTS.y + 12}>
                {text}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

function HeartRate({ day, buckets, x }: { day: Day; buckets: readonly Bucket[]; x: Scale }) {
  const { maximum } = day;
  const shown = heartRange(buckets);
  const y = scaleLinear(shown ?? [0, 1], [HEART.y + HEART.height, HEART.y]);
  const [, until = 0] = x.range();
  const runs = stretchesBy(buckets, ({ median }) => median !== null).filter(({ value }) => value);
  const middle = ({ at }: Bucket) => x(at + 150);
  const range = area<Bucket>(
    middle,
    ({ lowest }) => y(lowest ?? 0),
    ({ highest }) => y(highest ?? 0),
  );
  const path = line<Bucket>(middle, ({ median }) => y(median ?? 0));
  return (
    <g class="series heart_rate" data-series="heart_rate">
      <text class="small" x={LEFT} y={HEART.y - 6}>
        {shown ? 'Heart rate, beats/min' : 'Heart rate: none came'}
      </text>
      {shown && <Values y={y} until={until} count={5} />}
      <Gaps gaps={gapsOf(day, buckets, ({ median }) => median)} x={x} y={HEART.y} height={HEART.height} />
      {maximum &&
        zonesInView(maximum.heart_rate, shown).map(share => (
          <Zone key={share} share={share} y={y(share * maximum.heart_rate)} until={until} />
        ))}
      {runs.map(({ buckets: run }) => (
        <g key={run[0]?.at}>
          {run.length > 1 && <path class="range" d={range(run) ?? ''} />}
          {run.length > 1 ? (
            <path class="line" d={path(run) ?? ''} data-points={run.map(({ at, median }) => `${at},${median}`).join(' ')} />
          ) : (
            run.map(one => (
              <circle key={one.at} class="point" cx={middle(one)} cy={y(one.median ?? 0)} r={1.4} data-points={`${one.at},${one.median}`} />
            ))
          )}
        </g>
      ))}
    </g>
  );
}

function Zone({ share, y, until }: { share: number; y: number; until: number }) {
  return (
    <g data-zone={share}>
      <line class="zone" x1={LEFT} x2={until} y1={y} y2={y} />
      <text class="small" x={until + 6} y={y + 4}>
        {Math.round(share * 100)} %
      </text>
    </g>
  );
}

function Values({ y, until, count }: { y: Scale; until: number; count: number }) {
  return (
    <g class="axis">
      {y.ticks(count).map(value => (
        <g key={value}>
          <line x1={LEFT} x2={until} y1={y(value)} y2={y(value)} />
          <text x={LEFT - 6} y={y(value) + 4} text-anchor="end" data-value={value}>
            {value}
          </text>
        </g>
      ))}
    </g>
  );
}

/** What the ring says the person did while it measured. */
function Sources({ buckets, x }: { buckets: readonly Bucket[]; x: Scale }) {
  return (
    <g class="sources">
      {stretchesBy(buckets, ({ source }) => source).map(({ value, buckets: run }) => {
        const [first] = run;
        const last = run.at(-1);
        if (value === null || !first || !last) return null;
        const width = x(last.at + 300) - x(first.at);
        return (
          <g key={first.at}>
            <rect class={`source ${value}`} x={x(first.at)} y={SOURCE.y} width={width} height={SOURCE.height} data-source={value} />
            {width > value.length * 6.5 + 6 && (
              <text class="on-source" x={x(first.at) + 4} y={SOURCE.y + 11}>
                {value}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

/** Moderate and vigorous activity begin here. */
const LEVELS = [3, 6] as const;

function Mets({ day, buckets, x }: { day: Day; buckets: readonly Bucket[]; x: Scale }) {
  const known = buckets.filter(({ met }) => met !== null);
  const [, high = 1] = extent(known, ({ met }) => met ?? 0);
  const y = scaleLinear([0, Math.max(7, high)], [BASE, MET.y]);
  const [, until = 0] = x.range();
  // One shape: a bar for each 5 minutes would be hundreds.
  const bar = ({ at, met }: Bucket) => `M${x(at).toFixed(1)} ${BASE}V${y(met ?? 0).toFixed(1)}H${(x(at + 300) - 0.3).toFixed(1)}V${BASE}Z`;
  return (
    <g class="mets" data-series="met">
      <text class="small" x={LEFT} y={MET.y - 6}>
        {known.length ? 'Metabolic equivalent (MET)' : 'MET: none came'}
      </text>
      <Gaps gaps={gapsOf(day, buckets, ({ met }) => met)} x={x} y={MET.y} height={MET.height} />
      {LEVELS.map(level => (
        <g key={level} class="axis">
          <line x1={LEFT} x2={until} y1={y(level)} y2={y(level)} />
          <text x={LEFT - 6} y={y(level) + 4} text-anchor="end">
            {level}
          </text>
        </g>
      ))}
      <path class="moved" d={known.map(bar).join('')} data-points={known.map(({ at, met }) => `${at},${met}`).join(' ')} />
    </g>
  );
}

function tellBucket(day: Day, bucket: Bucket | undefined): string {
  if (!bucket) return '';
  const { at, median, lowest, highest, source, met } = bucket;
  const heart =
    median === null
      ? isOver(day, bucket)
        ? 'no heart rate'
        : 'not come yet'
      : `heart rate ${Math.round(median)} (${lowest} to ${highest}), ${source ?? 'source not known'}`;
  const events = day.events
    .filter(({ start, end }) => start < at + 300 && (end ?? start) >= at)
    .map(({ kind, name }) => (kind === 'tag' ? tagName(name) : name));
  return [`${clock(at, offsetAt(day, at))}: ${heart}`, met === null ? '' : `MET ${met.toFixed(1)}`, ...events]
    .filter(part => part)
    .join(', ');
}
