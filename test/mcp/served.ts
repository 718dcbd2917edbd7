import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { inject } from 'vitest';
import { readSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import type { ServeOptions } from '../../src/mcp/server.ts';

export interface Assistant {
  client: Client;
  /** The text of a tool's answer; what went wrong begins with `error: `. */
  call(tool: string, args?: Record<string, unknown>): Promise<string>;
  close(): Promise<void>;
}

export function assistantOf(client: Client, close: () => Promise<void>): Assistant {
  return {
    client,
    async call(name, args = {}) {
      const { content, isError } = (await client.callTool({ name, arguments: args })) as CallToolResult;
      const [said] = content;
      const text = said?.type === 'text' ? said.text : '';
      return isError ? `error: ${text}` : text;
    },
    close,
  };
}

/** An assistant of the SDK's own, in this process; the queries have theirs, which lie beside the compiled server. */
export async function openAssistant(data: string, options: Partial<ServeOptions> = {}): Promise<Assistant> {
  const { serve } = (await import(join(inject('compiled'), 'src/mcp/server.js'))) as typeof import('../../src/mcp/server.ts');
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const settings = readSettings({ RINGNECK_DATA: data, RINGNECK_LOG_LEVEL: 'silent' });
  const served = await serve({ settings, log: silentLog, ...options }, theirs);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(ours);
  return assistantOf(client, async () => {
    await client.close();
    await served.close();
  });
}
