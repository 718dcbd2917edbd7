interface Paged {
  page: number;
  pages: number;
  total: number;
}

/** What a finding says where not everybody is on the page; else nothing. */
export const pageText = ({ page, pages, total }: Paged) =>
  pages > 1 ? ` People of page ${page} of ${pages}, ${total.toLocaleString('en')} in all.` : '';

/** The same in the name of a file. */
export const pageFile = ({ page, pages }: Pick<Paged, 'page' | 'pages'>) => (pages > 1 ? `-page-${page}-of-${pages}` : '');
