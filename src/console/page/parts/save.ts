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
const TITLE = 28;

/** What is drawn in an element, as on the page, under its title. */
export async function pictureOf(room: HTMLElement, title: string): Promise<Blob> {
  const box = room.getBoundingClientRect();
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(box.width * SCALE);
  canvas.height = Math.ceil((box.height + TITLE) * SCALE);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser gives no canvas');
  const { color, backgroundColor, fontFamily } = getComputedStyle(room.closest('.card') ?? room);
  context.scale(SCALE, SCALE);
  context.fillStyle = backgroundColor;
  context.fillRect(0, 0, box.width, box.height + TITLE);
  context.fillStyle = color;
  context.font = `600 15px ${fontFamily}`;
  context.fillText(title, 4, 18);
  for (const drawn of room.querySelectorAll<SVGSVGElement | HTMLCanvasElement>('svg, canvas')) {
    const { left, top, width, height } = drawn.getBoundingClientRect();
    const image = drawn instanceof HTMLCanvasElement ? drawn : await imageOf(drawn, width, height);
    context.drawImage(image, left - box.left, top - box.top + TITLE, width, height);
  }
  writeTexts(room, context);
  return new Promise((take, fail) => canvas.toBlob(blob => (blob ? take(blob) : fail(new Error('no picture came of it'))), 'image/png'));
}

/** Words that stand beside shapes, as those of a table, where they stand. */
function writeTexts(room: HTMLElement, context: CanvasRenderingContext2D): void {
  const box = room.getBoundingClientRect();
  const walker = document.createTreeWalker(room, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { currentNode } = walker;
    const parent = currentNode.parentElement;
    if (!parent || !currentNode.nodeValue?.trim() || parent.closest('svg, select, button, .unseen, .told')) continue;
    const range = document.createRange();
    range.selectNodeContents(currentNode);
    const { left, bottom, height } = range.getBoundingClientRect();
    const { color, fontWeight, fontSize, fontFamily } = getComputedStyle(parent);
    context.fillStyle = color;
    context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
    context.fillText(currentNode.nodeValue.trim(), left - box.left, bottom - box.top + TITLE - height * 0.24);
  }
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
