import { scaleLinear } from 'd3-scale';
import { clock, hoursAndMinutes, offsetName } from '../parts/format.ts';
import { Plot } from '../parts/plot.tsx';
import { Hours } from './hours.tsx';
import { type Moment, momentsOf, movementOf, type Sleep, STAGE_NAMES, STAGES, spansOf, totalOf } from './night-model.ts';
import { SeriesLane } from './series-lane.tsx';

const LANE = 30;
const LANES = STAGES.length * LANE;
const MOVEMENT = 28;
const PLACES = { heart: LANES + 24, hrv: LANES + 146, movement: LANES + 240 } as const;
const HEIGHTS = { heart: 84, hrv: 62 } as const;
const BASE = PLACES.movement + MOVEMENT;

/** A sleep on one axis of elapsed time, told by the person's clock: stages, heart rate, variability, movement. */
export function NightChart({ sleep, label }: { sleep: Sleep; label: string }) {
  const moments = momentsOf(sleep);
  const place = (x: number, width: number) => Math.round(((x - leftOf(width)) / (width - leftOf(width) - RIGHT)) * (moments.length - 1));
  return (
    <Plot label={label} count={moments.length} say={at => tellMoment(moments[at], sleep)} placeAt={place}>
      {({ width, cursor }) => <Drawn sleep={sleep} width={width} at={cursor === null ? null : (moments[cursor]?.at ?? null)} />}
    </Plot>
  );
}

const RIGHT = 66;
const leftOf = (width: number) => (width < 500 ? 46 : 64);

function Drawn({ sleep, width, at }: { sleep: Sleep; width: number; at: number | null }) {
  const { start, end, start_offset: before, end_offset: after } = sleep;
  const left = leftOf(width);
  const x = scaleLinear([start, end], [left, width - RIGHT]);
  const isMoved = before !== after;
  const height = BASE + (isMoved ? 38 : 22);
  const hours = { x, from: start, until: end };
  return (
    <svg viewBox={`0 0 ${width} ${height}`} height={height} aria-hidden="true">
      <Hours {...hours} offset={before} y={BASE + 16} height={BASE + 4} {...(isMoved ? { name: offsetName(before) } : {})} />
      {isMoved && <Hours {...hours} offset={after} y={BASE + 32} height={0} name={offsetName(after)} />}
      <Lanes sleep={sleep} x={x} width={width} />
      <SeriesLane
        {...{
          name: 'heart_rate',
          title: 'Heart rate, beats/min',
          series: sleep.heart_rate,
          x,
          width,
          left,
          right: RIGHT,
          from: start,
          until: end,
        }}
        {...{ y: PLACES.heart, height: HEIGHTS.heart, isLowestMarked: true, offset: before }}
      />
      <SeriesLane
        {...{ name: 'hrv', title: 'Variability (rMSSD), ms', series: sleep.hrv, x, width, left, right: RIGHT, from: start, until: end }}
        {...{ y: PLACES.hrv, height: HEIGHTS.hrv, mean: sleep.average_hrv, offset: before }}
      />
      <Movement sleep={sleep} x={x} left={left} />
      {at !== null && <line class="cursor" x1={x(at)} x2={x(at)} y1={0} y2={BASE} />}
    </svg>
  );
}

type Scale = (instant: number) => number;

function Lanes({ sleep, x, width }: { sleep: Sleep; x: Scale; width: number }) {
  const spans = spansOf(sleep);
  return (
    <g class="lanes">
      {STAGES.map((stage, lane) => (
        <g key={stage} class="axis">
          <line x1={x(sleep.start)} x2={x(sleep.end)} y1={(lane + 1) * LANE} y2={(lane + 1) * LANE} />
          <text x={x(sleep.start) - 8} y={lane * LANE + 19} text-anchor="end">
            {STAGE_NAMES[stage]}
          </text>
          <text class="value" x={width - RIGHT + 8} y={lane * LANE + 19} data-total={stage} data-seconds={totalOf(spans, stage)}>
            {spans.length ? hoursAndMinutes(totalOf(spans, stage)) : '—'}
          </text>
        </g>
      ))}
      {!spans.length && <rect class="gap" x={x(sleep.start)} y={0} width={x(sleep.end) - x(sleep.start)} height={LANES} />}
      {spans.map(({ start, seconds, stage }) => {
        const across = { x: x(start), width: Math.max(0.75, x(start + seconds) - x(start)) };
        const data = { 'data-stage': stage ?? 'unknown', 'data-start': start, 'data-seconds': seconds };
        if (stage === null) return <rect key={start} class="gap" {...across} y={0} height={LANES} {...data} />;
        const y = STAGES.indexOf(stage) * LANE + 4;
        return (
          <rect key={start} class={`stage ${stage}`} {...across} y={y} height={LANE - 8} rx={Math.min(2.5, across.width / 2)} {...data} />
        );
      })}
    </g>
  );
}

function Movement({ sleep, x, left }: { sleep: Sleep; x: Scale; left: number }) {
  const bars = movementOf(sleep);
  return (
    <g class="movement">
      <text class="small" x={left} y={PLACES.movement - 8}>
        Movement
      </text>
      {!bars.length && <rect class="gap" x={left} y={PLACES.movement} width={x(sleep.end) - left} height={MOVEMENT} />}
      {bars.map(({ at, seconds, value }) => {
        const across = { x: x(at) + 0.5, width: Math.max(1, x(Math.min(at + seconds, sleep.end)) - x(at) - 1) };
        if (value === null) return <rect key={at} class="gap" {...across} y={PLACES.movement} height={MOVEMENT} />;
        const height = Math.max(1, value * MOVEMENT);
        return <rect key={at} class="moved" {...across} y={BASE - height} height={height} data-start={at} data-value={value} />;
      })}
    </g>
  );
}

function tellMoment(moment: Moment | undefined, { start_offset }: Sleep): string {
  if (!moment) return '';
  const { at, stage, heartRate, hrv, movement } = moment;
  const parts = [
    stage === null ? 'stage not known' : STAGE_NAMES[stage].replace(/^[A-Z](?=[a-z])/, letter => letter.toLowerCase()),
    heartRate === null ? 'no heart rate' : `heart rate ${heartRate}`,
    hrv === null ? 'no HRV' : `HRV ${hrv} ms`,
    movement === null ? '' : movement < 0.05 ? 'still' : 'moving',
  ];
  return `${clock(at, start_offset)}: ${parts.filter(part => part).join(', ')}`;
}
