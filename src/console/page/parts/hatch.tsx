/** Where nothing is known. Stands once in the page, not hidden: a pattern of a hidden SVG is not drawn. */
export const HATCH = 'url(#hatch)';

export function Hatch() {
  return (
    <svg class="hatch" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <line class="hatch-line" x1="0" y1="0" x2="0" y2="6" />
        </pattern>
      </defs>
    </svg>
  );
}
