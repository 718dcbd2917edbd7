import { createHash } from 'node:crypto';
import { scopeMeanings } from '../../../schema/scopes.ts';
import { escapeHtml } from '../../base/html.ts';
import { AUTHORIZATION_PARAMETERS, type AuthorizationRequest } from './authorization-request.ts';

/** A page without a script, with the headers that keep it so. */
export interface Page {
  status: number;
  html: string;
  headers: Readonly<Record<string, string>>;
}

const STYLE = `
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 0 auto; padding: 1rem; color: #222; background: #fff; }
h1 { font-size: 1.5rem; }
code { overflow-wrap: anywhere; }
fieldset { border: 1px solid #999; margin: 1rem 0; padding: 0.5rem 1rem; }
label { display: block; padding: 0.4rem 0; }
select, button { font: inherit; padding: 0.6rem 1rem; width: 100%; margin: 0.3rem 0; box-sizing: border-box; }
`;

/** The page on which one picks a person and what the client may read, or refuses. */
export function signInPage(
  people: readonly { name: string; user_id: string }[],
  request: AuthorizationRequest,
  parameters: URLSearchParams,
): Page {
  const hidden = AUTHORIZATION_PARAMETERS.flatMap(name => parameters.getAll(name).map(value => [name, value] as const));
  const body = `
<h1>Sign in to the sandbox</h1>
<p>The people of the sandbox do not exist. Choose whose data the application <code>${escapeHtml(parameters.get('client_id') ?? '')}</code> may read.
The answer goes to <code>${escapeHtml(request.redirectUri)}</code>.</p>
<form method="post" action="/oauth/authorize">
${hidden.map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`).join('\n')}
<label>Person
<select name="person" required>
<option value="">choose</option>
${people.map(({ name, user_id }) => `<option value="${escapeHtml(user_id)}">${escapeHtml(name)}</option>`).join('\n')}
</select></label>
<fieldset><legend>The application may read</legend>
${request.scopes
  .map(
    scope =>
      `<label><input type="checkbox" name="grant" value="${scope}" checked> ${escapeHtml(scopeMeanings[scope])} (<code>${scope}</code>)</label>`,
  )
  .join('\n')}
</fieldset>
<button name="decision" value="allow">Allow</button>
<button name="decision" value="refuse" formnovalidate>Refuse</button>
</form>`;
  // A browser follows the redirect after a form only to where the form itself may go.
  return pageOf(200, 'Sign in', body, `'self' ${new URL(request.redirectUri).origin}`);
}

/** The page where nobody may be sent back. */
export function errorPage(sentence: string, status = 400): Page {
  return pageOf(status, 'Sign-in failed', `\n<h1>This sign-in cannot go on</h1>\n<p>${escapeHtml(sentence)}</p>`, "'none'");
}

function pageOf(status: number, title: string, body: string, formAction: string): Page {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>${body}
</body>
</html>
`;
  const style = `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`;
  return {
    status,
    html,
    headers: {
      'Content-Security-Policy': `default-src 'none'; style-src ${style}; form-action ${formAction}; frame-ancestors 'none'; base-uri 'none'`,
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-store',
    },
  };
}
