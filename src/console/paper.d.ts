import type { RenderReport } from './api/report.ts';

/** What `scripts/build-page.mjs` makes of `page/paper/report.tsx`: this side of the console knows no JSX and no DOM. */
export declare const renderReport: RenderReport;
