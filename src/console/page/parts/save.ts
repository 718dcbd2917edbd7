/** Puts a file among the browser's downloads. */
export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, '-');
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Twice as many pixels as on the page: sharp on paper too. */
const SCALE = 2;
/** What browsers give a canvas. */
const MOST_PIXELS = 16_384;
const TITLE = 28;

/** What is drawn in an element, as on the page, under its title; what is scrolled out of sight too. */
export async function pictureOf(room: HTMLElement, title: string): Promise<Blob> {
  const drawn = [...room.querySelectorAll<SVGSVGElement | HTMLCanvasElement>('svg, canvas')].map(element => ({
    element,
    box: placeIn(room, element, element.getBoundingClientRect()),
  }));
  const { width: shown, height } = room.getBoundingClientRect();
  const width = Math.max(shown, ...drawn.map(({ box }) => box.right));
  const scale = Math.min(SCALE, MOST_PIXELS / width);
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil((height + TITLE) * scale);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser gives no canvas');
  const { color, backgroundColor, fontFamily } = getComputedStyle(room.closest('.card') ?? room);
  context.scale(scale, scale);
  context.fillStyle = backgroundColor;
  context.fillRect(0, 0, width, height + TITLE);
  context.fillStyle = color;
  context.font = `600 15px ${fontFamily}`;
  context.fillText(title, 4, 18);
  for (const { element, box } of drawn) {
    const image = element instanceof HTMLCanvasElement ? element : await imageOf(element, box.width, box.height);
    context.drawImage(image, box.left, box.top + TITLE, box.width, box.height);
  }
  writeTexts(room, context);
  return new Promise((take, fail) => canvas.toBlob(blob => (blob ? take(blob) : fail(new Error('no picture came of it'))), 'image/png'));
}

/** Where something stands in a room in which nothing is scrolled. */
function placeIn(room: HTMLElement, element: Element, box: DOMRect): DOMRect {
  const { left, top } = room.getBoundingClientRect();
  let [x, y] = [box.left - left, box.top - top];
  for (let at = element.parentElement; at && at !== room; at = at.parentElement) {
    x += at.scrollLeft;
    y += at.scrollTop;
  }
  return new DOMRect(x, y, box.width, box.height);
}

/** Words that stand beside shapes, as those of a table, where they stand. */
function writeTexts(room: HTMLElement, context: CanvasRenderingContext2D): void {
  const walker = document.createTreeWalker(room, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { currentNode } = walker;
    const parent = currentNode.parentElement;
    if (!parent || !currentNode.nodeValue?.trim() || parent.closest('svg, select, button, .unseen, .told')) continue;
    const { color, fontWeight, fontSize, fontFamily } = getComputedStyle(parent);
    context.fillStyle = color;
    context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
    for (const { text, box } of linesOf(currentNode)) {
      const { left, bottom, height } = placeIn(room, parent, box);
      context.fillText(text, left, bottom + TITLE - height * 0.24);
    }
  }
}

/** A text in the lines in which it stands. */
function linesOf(node: Node): { text: string; box: DOMRect }[] {
  const lines: { text: string; box: DOMRect }[] = [];
  for (const { 0: word, index } of (node.nodeValue ?? '').matchAll(/\S+/g)) {
    const range = document.createRange();
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (last && Math.abs(last.box.bottom - box.bottom) < 1) last.text += ` ${word}`;
    else lines.push({ text: word, box });
  }
  return lines;
}

/** What a style sheet says of a shape, which a picture by itself has not. */
const STYLES = [
  ...[
    'fill',
    'fill-opacity',
    'stroke',
    'stroke-width',
    'stroke-dasharray',
    'stroke-opacity',
    'stroke-linejoin',
    'stroke-linecap',
    'opacity',
  ],
  ...['font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline'],
];

async function imageOf(svg: SVGSVGElement, width: number, height: number): Promise<HTMLImageElement> {
  const copy = document.importNode(svg, true);
  const hatch = document.querySelector('svg.hatch defs');
  writeStyles(svg, copy);
  if (hatch) {
    const defs = document.importNode(hatch, true);
    writeStyles(hatch, defs);
    copy.prepend(defs);
  }
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' }));
  const image = new Image(width * SCALE, height * SCALE);
  image.src = url;
  await image.decode().finally(() => URL.revokeObjectURL(url));
  return image;
}

function writeStyles(from: Element, to: Element): void {
  const sources = [from, ...from.querySelectorAll('*')];
  const targets = [to, ...to.querySelectorAll('*')];
  for (const [at, source] of sources.entries()) {
    const computed = getComputedStyle(source);
    for (const name of STYLES) {
      const value = computed.getPropertyValue(name);
      // The address of the page stands in front of what it names within itself.
      if (value) targets[at]?.setAttribute(name, value.replace(/url\("[^"#]*(#[^"]*)"\)/, 'url($1)'));
    }
  }
}
