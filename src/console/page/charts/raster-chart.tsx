import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { AnswerOf } from '../../api/routes.ts';
import { clock, dayName, hoursAndMinutes, offsetName } from '../parts/format.ts';
import { Plot } from '../parts/plot.tsx';
import { useScheme } from '../parts/scheme.ts';
import {
  calendarDayAt,
  calendarLayoutOf,
  coloursOf,
  drawCalendar,
  drawRaster,
  drawSquare,
  layoutOf,
  placeOf,
  rowAt,
} from './raster-draw.ts';
import './raster.css';
import { BINS, type CalendarDay, type RasterModel, type RasterRow } from './raster-model.ts';

type Raster = AnswerOf<'GET people/:id/raster'>;

interface RasterProps {
  model: RasterModel;
  isStages: boolean;
  isDouble: boolean;
  onOpen(day: string): void;
}

/** Nights below each other; a night that is pressed opens. */
export function RasterChart({ model, isStages, isDouble, onOpen }: RasterProps) {
  const at = useRef<number | null>(null);
  const open = (row: number | undefined | null) => {
    const day = model.rows[row ?? -1]?.day;
    if (day !== undefined) onOpen(day);
  };
  return (
    <OnEnter open={() => open(at.current)}>
      <Plot label="Nights, noon to noon; Enter opens a night" count={model.rows.length} say={row => tellRow(model.rows[row])}>
        {({ width, cursor }) => {
          at.current = cursor;
          const layout = layoutOf(model.rows.length, width, isDouble);
          return (
            <Drawn
              key="raster"
              draw={canvas => drawRaster(canvas, model, layout, isStages)}
              shows={[model, isStages, isDouble, width]}
              data={{ model, layout, isStages }}
              onPress={(x, y) => open(rowAt(layout, x, y))}
              mark={
                cursor === null
                  ? null
                  : { x: layout.left, y: layout.top + cursor * layout.rowHeight, width: layout.dayWidth, height: layout.rowHeight }
              }
            />
          );
        }}
      </Plot>
    </OnEnter>
  );
}

function tellRow(row: RasterRow | undefined): string {
  if (!row) return '';
  const { day, start, end, offset, endOffset } = row;
  const name = `${dayName(day)} ${day.slice(0, 4)}`;
  if (start === null || end === null || offset === null || endOffset === null) return `${name}: no night is stored`;
  const offsets = offset === endOffset ? offsetName(offset) : `${offsetName(offset)}, then ${offsetName(endOffset)}`;
  return `${name}: in bed from ${clock(start, offset)} to ${clock(end, endOffset)} (${offsets}), ${hoursAndMinutes(end - start)}`;
}

interface CalendarProps {
  days: readonly CalendarDay[];
  onOpen(day: string): void;
}

/** A square for each day, by the score of its night. */
export function CalendarChart({ days, onOpen }: CalendarProps) {
  const at = useRef<number | null>(null);
  const open = (day: CalendarDay | undefined) => day && onOpen(day.day);
  return (
    <OnEnter open={() => open(days[at.current ?? -1])}>
      <Plot label="Sleep scores by day; Enter opens a night" count={days.length} say={place => tellDay(days[place])}>
        {({ width, cursor }) => {
          at.current = cursor;
          const layout = calendarLayoutOf(days, width);
          const here = days[cursor ?? -1];
          return (
            <Drawn
              key="calendar"
              draw={canvas => drawCalendar(canvas, days, layout)}
              shows={[days, width]}
              data={{ days, layout }}
              onPress={(x, y) => open(calendarDayAt(layout, days, x, y))}
              mark={here ? { ...placeOf(layout, here), width: layout.size, height: layout.size } : null}
            />
          );
        }}
      </Plot>
    </OnEnter>
  );
}

const tellDay = (day: CalendarDay | undefined) =>
  day ? `${dayName(day.day)} ${day.day.slice(0, 4)}: ${day.score === null ? 'no sleep score' : `sleep score ${day.score}`}` : '';

/** Hears Enter of the chart within, which has the focus. */
function OnEnter({ open, children }: { open(): void; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: what has the focus is the chart within
    <div
      onKeyDown={event => {
        if (event.key !== 'Enter') return;
        event.preventDefault();
        open();
      }}
    >
      {children}
    </div>
  );
}

interface DrawnProps {
  draw(canvas: HTMLCanvasElement): void;
  /** Drawn anew when one of these changes. */
  shows: readonly unknown[];
  /** What is drawn, for who reads it by a script. */
  data: object;
  onPress(x: number, y: number): void;
  mark: { x: number; y: number; width: number; height: number } | null;
}

function Drawn({ draw, shows, data, onPress, mark }: DrawnProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const cursor = useRef<HTMLSpanElement>(null);
  const scheme = useScheme();
  useLayoutEffect(() => {
    if (!canvas.current) return;
    draw(canvas.current);
    Object.assign(canvas.current, { __data__: data });
  }, [...shows, scheme]);
  useLayoutEffect(() => {
    const style = cursor.current?.style;
    if (!mark || !style) return;
    style.setProperty('transform', `translate(${mark.x}px, ${mark.y}px)`);
    style.setProperty('width', `${mark.width}px`);
    style.setProperty('height', `${Math.max(3, mark.height)}px`);
  });
  useLayoutEffect(() => cursor.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [mark?.x, mark?.y]);
  return (
    <div class="drawn">
      <canvas ref={canvas} onClick={event => onPress(event.offsetX, event.offsetY)} />
      {mark && <span ref={cursor} class="drawn-cursor" />}
    </div>
  );
}

/** Each colour with its words. */
export function RasterLegend({ isStages }: { isStages: boolean }) {
  const stages = isStages ? ['deep', 'light', 'rem', 'awake'] : ['asleep', 'awake'];
  const words: Readonly<Record<string, string>> = { deep: 'Deep', light: 'Light', rem: 'REM', awake: 'Awake in bed', asleep: 'Asleep' };
  return (
    <ul class="legend">
      {stages.map(stage => (
        <li key={stage}>
          <span class={`swatch ${stage}`} /> {words[stage]}
        </li>
      ))}
      <li>
        <span class="swatch unknown" /> Stage not known
      </li>
      <li>
        <span class="swatch none" /> No night stored
      </li>
    </ul>
  );
}

export function CalendarLegend() {
  const scheme = useScheme();
  const bins = [null, ...BINS];
  return (
    <ul class="legend">
      {bins.map((least, at) => (
        <li key={least ?? 'none'}>
          <Square score={least} scheme={scheme} /> {least === null ? 'no score' : binText(least, BINS[at])}
        </li>
      ))}
    </ul>
  );
}

function binText(least: number, next: number | undefined): string {
  if (least === 0) return `under ${next}`;
  return next === undefined ? `${least} and more` : `${least}–${next - 1}`;
}

function Square({ score, scheme }: { score: number | null; scheme: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || !canvas.current?.parentElement) return;
    context.reset();
    drawSquare(context, score, { x: 1, y: 1, size: 12 }, coloursOf(canvas.current.parentElement));
  }, [score, scheme]);
  return <canvas ref={canvas} width={14} height={14} />;
}

/** The model of an answer, made anew where the answer is another. */
export const useModel = <Model,>(make: (raster: Raster) => Model, raster: Raster, by = ''): Model =>
  useMemo(() => make(raster), [raster, by]);
