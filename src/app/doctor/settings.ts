import type { Settings } from '../../base/config.ts';
import { isPrivateWay } from '../../base/setting.ts';
import { withoutQuery } from '../../sync/subscriptions/callback-url.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** What is set, and what of it may not be what was meant. */
export function examineSettings(settings: Settings): Finding[] {
  const { serviceUrl, webhooks, signatureWindow, unknown, readable } = settings;
  const findings = [
    ...unknown.map(said => warn('settings', said, 'correct its name, or unset it')),
    ...readable.map(({ message, mend }) => warn('settings', message, mend)),
  ];
  if (!serviceUrl) {
    const mend = 'set it to the base address of the service, as http://127.0.0.1:4000';
    findings.push(fail('settings', 'RINGNECK_SERVICE_URL is not set: there is nobody to ask', mend));
  }
  if (webhooks) {
    if (!isPrivateWay(webhooks.callbackUrl)) {
      const mend = 'put a reverse proxy with TLS in front, and give RINGNECK_CALLBACK_URL its https:// address';
      findings.push(warn('settings', `events come to ${withoutQuery(webhooks.callbackUrl)} unencrypted`, mend));
    }
    if (signatureWindow === 0) {
      findings.push(warn('settings', 'RINGNECK_SIGNATURE_WINDOW is 0: an old event that is sent again is taken', 'leave it at 300'));
    }
  }
  if (!findings.length) findings.push(ok('settings', 'all are understood'));
  if (!webhooks) findings.push(ok('settings', 'webhooks are not configured: changes are found by sweeps'));
  return findings;
}
