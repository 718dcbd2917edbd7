import { MONTHS, offsetName } from '../parts/format.ts';
import { binOf, type CalendarDay, meansInView, type RasterModel } from './raster-model.ts';

/** Where what is drawn lies: pixels of the page. */
export interface RasterLayout {
  left: number;
  top: number;
  /** Of one day; twice as wide where it is doubled. */
  dayWidth: number;
  rowHeight: number;
  rows: number;
  isDouble: boolean;
  width: number;
  height: number;
}

const DAY = 86_400;
const TOP = 22;

export function layoutOf(rows: number, width: number, isDouble: boolean): RasterLayout {
  const isNarrow = width < 520;
  const left = isNarrow ? 40 : 76;
  const right = isNarrow ? 56 : 76;
  const rowHeight = rows > 720 ? 1 : Math.min(10, Math.max(2, Math.floor(760 / rows)));
  const dayWidth = (width - left - right) / (isDouble ? 2 : 1);
  return { left, top: TOP, dayWidth, rowHeight, rows, isDouble, width, height: TOP + rows * rowHeight + 4 };
}

/** The night at a place: in the right half the row below. */
export function rowAt({ left, top, dayWidth, rowHeight, rows, isDouble }: RasterLayout, x: number, y: number): number | undefined {
  const row = Math.floor((y - top) / rowHeight) + (isDouble && x >= left + dayWidth ? 1 : 0);
  return row >= 0 && row < rows && x >= left ? row : undefined;
}

/** The colours of the page, as they are just now. */
export function coloursOf(element: HTMLElement) {
  const probe = document.createElement('span');
  element.append(probe);
  const of = (name: string) => {
    probe.style.setProperty('color', `var(--${name})`);
    return getComputedStyle(probe).color;
  };
  const colours = {
    ...{ asleep: of('asleep'), deep: of('deep'), light: of('light'), rem: of('rem'), awake: of('awake') },
    ...{ ink: of('ink'), muted: of('muted'), line: of('line'), data: of('data'), card: of('card'), link: of('link') },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  probe.remove();
  return colours;
}
type Colours = ReturnType<typeof coloursOf>;

export const colourOf = (stage: string, isStages: boolean, { asleep, deep, light, rem, awake, muted }: Colours): string => {
  if (stage === 'a') return awake;
  if (stage === '?') return muted;
  if (!isStages) return asleep;
  return stage === 'd' ? deep : stage === 'r' ? rem : light;
};

/** A canvas as sharp as the screen, of pixels of the page. */
export function contextOf(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.setProperty('width', `${width}px`);
  canvas.style.setProperty('height', `${height}px`);
  const context = canvas.getContext('2d');
  context?.scale(scale, scale);
  return context;
}

export function drawRaster(canvas: HTMLCanvasElement, model: RasterModel, layout: RasterLayout, isStages: boolean): void {
  const context = contextOf(canvas, layout.width, layout.height);
  if (!context) return;
  const colours = coloursOf(canvas.parentElement ?? canvas);
  context.font = colours.font;
  drawHours(context, layout, colours);
  drawMonths(context, model, layout, colours);
  const { left, top, dayWidth, rowHeight, isDouble } = layout;
  const bar = (row: number, from: number, to: number, colour: string) => {
    context.fillStyle = colour;
    const [x, width] = [left + (from / DAY) * dayWidth, ((to - from) / DAY) * dayWidth];
    const height = rowHeight > 3 ? rowHeight - 1 : rowHeight;
    context.fillRect(x, top + row * rowHeight, width, height);
    if (isDouble && row > 0) context.fillRect(x + dayWidth, top + (row - 1) * rowHeight, width, height);
  };
  for (const [row, { hasNight }] of model.rows.entries()) if (!hasNight) bar(row, 0, DAY, colours.line);
  for (const { row, from, to, stage } of model.pieces) bar(row, from, to, colourOf(stage, isStages, colours));
  drawMoves(context, model, layout, colours);
}

function drawHours(
  context: CanvasRenderingContext2D,
  { left, top, dayWidth, height, isDouble }: RasterLayout,
  { muted, line }: Colours,
): void {
  const step = dayWidth < 160 ? 2 : 1;
  context.textAlign = 'center';
  for (let quarter = 0; quarter <= (isDouble ? 8 : 4); quarter += step) {
    const x = left + (quarter / 4) * dayWidth;
    context.fillStyle = muted;
    context.fillText(`${String((12 + quarter * 6) % 24).padStart(2, '0')}:00`, x, 12);
    context.fillStyle = line;
    context.fillRect(Math.round(x), top, 1, height - top);
  }
}

function drawMonths(context: CanvasRenderingContext2D, { rows }: RasterModel, layout: RasterLayout, { muted, line }: Colours): void {
  context.textAlign = 'right';
  for (const [row, { day }] of rows.entries()) {
    if (!day.endsWith('-01')) continue;
    const y = layout.top + row * layout.rowHeight;
    context.fillStyle = line;
    context.fillRect(layout.left, y, layout.width - 2 * layout.left, 1);
    context.fillStyle = muted;
    const month = MONTHS[Number(day.slice(5, 7)) - 1]?.slice(0, 3);
    context.fillText(`${month}${day.slice(5, 7) === '01' && layout.left > 50 ? ` ${day.slice(0, 4)}` : ''}`, layout.left - 6, y + 4);
  }
}

function drawMoves(context: CanvasRenderingContext2D, { moves }: RasterModel, layout: RasterLayout, { muted }: Colours): void {
  const x = layout.left + layout.dayWidth * (layout.isDouble ? 2 : 1);
  context.textAlign = 'left';
  context.fillStyle = muted;
  context.strokeStyle = muted;
  let free = 0;
  for (const { row, offset } of moves) {
    const at = layout.top + (row + 0.5) * layout.rowHeight;
    const y = Math.max(at, free);
    if (y > layout.height) return;
    context.beginPath();
    context.moveTo(x + 2, at);
    context.lineTo(x + 12, y);
    context.stroke();
    context.fillText(offsetName(offset), x + 15, y + 4);
    free = y + 12;
  }
}

export interface CalendarLayout {
  left: number;
  top: number;
  size: number;
  width: number;
  height: number;
}

export function calendarLayoutOf(days: readonly CalendarDay[], width: number): CalendarLayout {
  const weeks = (days.at(-1)?.week ?? 0) + 1;
  const [left, top] = [36, 20];
  const size = Math.max(5, Math.min(18, Math.floor((width - left) / weeks)));
  return { left, top, size, width: Math.max(width, left + weeks * size), height: top + 7 * size + 24 };
}

export const placeOf = ({ left, top, size }: CalendarLayout, { week, weekday }: CalendarDay) => ({
  x: left + week * size,
  y: top + weekday * size,
});

export function calendarDayAt(layout: CalendarLayout, days: readonly CalendarDay[], x: number, y: number): CalendarDay | undefined {
  return days.find(day => {
    const place = placeOf(layout, day);
    return x >= place.x && x < place.x + layout.size && y >= place.y && y < place.y + layout.size;
  });
}

/** Shares of the colour of data, from the lowest bin to the highest. */
const SHARES = [0.15, 0.32, 0.52, 0.74, 1] as const;

export function drawCalendar(canvas: HTMLCanvasElement, days: readonly CalendarDay[], layout: CalendarLayout): void {
  const context = contextOf(canvas, layout.width, layout.height);
  if (!context) return;
  const colours = coloursOf(canvas.parentElement ?? canvas);
  context.font = colours.font;
  context.fillStyle = colours.muted;
  for (const [weekday, name] of ['Mon', '', 'Wed', '', 'Fri', '', ''].entries())
    context.fillText(name, 0, layout.top + (weekday + 0.7) * layout.size);
  drawMeans(context, days, layout);
  for (const day of days) {
    const { x, y } = placeOf(layout, day);
    drawSquare(context, day.score, { x, y, size: layout.size - 1 }, colours);
  }
}

function drawMeans(context: CanvasRenderingContext2D, days: readonly CalendarDay[], layout: CalendarLayout): void {
  context.textAlign = 'left';
  for (const { month, mean, x } of meansInView(days, layout)) {
    context.fillText(MONTHS[Number(month.slice(5)) - 1]?.slice(0, 3) ?? '', x, 12);
    context.fillText(mean === null ? '—' : String(Math.round(mean)), x, layout.height - 6);
  }
}

export function drawSquare(
  context: CanvasRenderingContext2D,
  score: number | null,
  { x, y, size }: { x: number; y: number; size: number },
  { data, muted }: Colours,
): void {
  if (score !== null) {
    context.globalAlpha = SHARES[binOf(score)] ?? 1;
    context.fillStyle = data;
    context.fillRect(x, y, size, size);
    context.globalAlpha = 1;
    return;
  }
  context.strokeStyle = muted;
  context.lineWidth = 0.7;
  context.beginPath();
  context.moveTo(x, y + size);
  context.lineTo(x + size, y);
  context.moveTo(x, y + size / 2);
  context.lineTo(x + size / 2, y);
  context.stroke();
}
