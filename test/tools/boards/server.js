// Serves the page, the dashboards and what the page asks of Prometheus, on one
// loopback port: a browser lets a page ask only where it came from.
import { createServer, request } from 'node:http';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.ttf': 'font/ttf',
};

const page = `<!doctype html>
<html><head><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="/bundle/index.css"></head>
<body><div id="root"></div><script type="module" src="/bundle/index.js"></script></body></html>`;

// fonts: Grafana's names of the files, which its libraries ask for and do not bring.
const fonts = {
  'Inter-Regular.woff2': 'inter/files/inter-latin-400-normal.woff2',
  'Inter-Medium.woff2': 'inter/files/inter-latin-500-normal.woff2',
};
const monospaced = 'roboto-mono/files/roboto-mono-latin-400-normal.woff2';

/** Starts the server. folders: bundle, boards, public and fonts; prometheus is an address. */
export async function serve(folders, prometheus) {
  const server = createServer(async (asked, answer) => {
    const { pathname } = new URL(asked.url, 'http://localhost');
    if (pathname.startsWith('/api/')) {
      proxy(asked, answer, prometheus);
      return;
    }
    if (pathname === '/') {
      answer.writeHead(200, { 'Content-Type': types['.html'] }).end(page);
      return;
    }
    const file = find(folders, pathname);
    try {
      const content = await readFile(file);
      answer.writeHead(200, { 'Content-Type': types[path.extname(file)] ?? 'application/octet-stream' }).end(content);
    } catch {
      answer.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { address: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

function find(folders, pathname) {
  const parts = path.posix.normalize(pathname).split('/').slice(1);
  if (parts[0] === 'public' && parts[1] === 'fonts') {
    return path.join(folders.fonts, fonts[parts.at(-1)] ?? monospaced);
  }
  return folders[parts[0]] ? path.join(folders[parts[0]], ...parts.slice(1)) : '';
}

function proxy(asked, answer, prometheus) {
  const headers = { ...asked.headers, host: new URL(prometheus).host };
  const forwarded = request(new URL(asked.url, prometheus), { method: asked.method, headers }, (result) => {
    answer.writeHead(result.statusCode, result.headers);
    result.pipe(answer);
  });
  forwarded.on('error', (error) => answer.writeHead(502).end(error.message));
  asked.pipe(forwarded);
}
