import { boxOf, type Layout } from './matrix-model.ts';

/** The colours of the page, as its style sheet has them now. */
export interface Colours {
  stored: string;
  failed: string;
  refused: string;
  line: string;
  mark: string;
  card: string;
}

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  // A value of light-dark() is resolved in `color` alone.
  const probe = document.createElement('span');
  // Where a system forces its colours all would be the same, and a cross on its cell not be seen.
  probe.style.setProperty('forced-color-adjust', 'none');
  element.append(probe);
  const resolve = (name: string) => {
    probe.style.setProperty('color', `var(${name})`);
    return getComputedStyle(probe).color || of(name);
  };
  const colours = {
    stored: resolve('--stored'),
    failed: resolve('--unusual'),
    refused: resolve('--not-authorised'),
    line: resolve('--muted'),
    mark: resolve('--second'),
    card: resolve('--card'),
  };
  probe.remove();
  return colours;
}

/** Draws one cell so that its letter is told by its shape, without colour. */
export function drawCell(context: CanvasRenderingContext2D, letter: string, box: ReturnType<typeof boxOf>, colours: Colours): void {
  const { x, y, width, height } = box;
  const [cx, cy] = [x + width / 2, y + height / 2];
  const outline = (colour: string) => {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  };
  const fill = (colour: string, from = 0) => {
    context.fillStyle = colour;
    context.fillRect(x, y + height * from, width, height * (1 - from));
  };
  switch (letter.toLowerCase()) {
    case 's':
      fill(colours.stored);
      break;
    case 'h':
      outline(colours.stored);
      fill(colours.stored, 0.5);
      break;
    case 'f':
      fill(colours.failed);
      drawCross(context, cx, cy, Math.min(width, height) / 4, colours.card);
      break;
    case 'n':
      fill(colours.refused);
      context.fillStyle = colours.card;
      context.fillRect(x + 2, cy - 1, width - 4, 2);
      break;
    case 'p':
      outline(colours.line);
      drawQuarter(context, cx, cy, Math.min(width, height) / 3.5, colours.mark);
      break;
    case 'e':
      context.fillStyle = colours.mark;
      context.beginPath();
      context.arc(cx, cy, 1.5, 0, 2 * Math.PI);
      context.fill();
      break;
    case 'u':
      context.fillStyle = colours.mark;
      context.fillRect(cx - 4, cy - 0.5, 8, 1);
      break;
    default:
      outline(colours.line);
  }
  if (letter === 'S' || letter === 'H') drawCorner(context, x + width, y, Math.min(8, width * 0.7), colours);
}

function drawCross(context: CanvasRenderingContext2D, cx: number, cy: number, arm: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(cx - arm, cy - arm);
  context.lineTo(cx + arm, cy + arm);
  context.moveTo(cx - arm, cy + arm);
  context.lineTo(cx + arm, cy - arm);
  context.stroke();
}

function drawQuarter(context: CanvasRenderingContext2D, cx: number, cy: number, radius: number, colour: string): void {
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.beginPath();
  context.arc(cx, cy, radius, 0, 2 * Math.PI);
  context.stroke();
  context.beginPath();
  context.moveTo(cx, cy);
  context.arc(cx, cy, radius, -Math.PI / 2, 0);
  context.fill();
}

function drawCorner(context: CanvasRenderingContext2D, right: number, top: number, size: number, { failed, card }: Colours): void {
  context.fillStyle = failed;
  context.strokeStyle = card;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(right - size, top);
  context.lineTo(right, top);
  context.lineTo(right, top + size);
  context.closePath();
  context.fill();
  context.stroke();
}

/** Draws the whole matrix. */
export function drawMatrix(canvas: HTMLCanvasElement, rows: readonly string[], layout: Layout): void {
  const scale = devicePixelRatio || 1;
  const [width, height] = [layout.columns * layout.width, layout.rows * layout.height];
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.setProperty('width', `${width}px`);
  canvas.style.setProperty('height', `${height}px`);
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(scale, scale);
  const colours = coloursOf(canvas.parentElement ?? canvas);
  for (const [row, letters] of rows.entries())
    for (const [column, letter] of [...letters].entries()) drawCell(context, letter, boxOf(layout, { row, column }), colours);
}
