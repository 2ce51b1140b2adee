// Draws the pages of the exporter and its command top over the demo, as the documents
// show them. `make pictures` runs it.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { startBrowser } from './browser.js';
import { writeSources } from './pictures.js';
import { exporter, runDemo } from './scenario.js';

const WIDTH = 1440;
const HEIGHT = 1000;
const ROWS = 30; // of the terminal
const COLUMNS = 150;

const flags = {
  repository: { type: 'string' }, // the clone whose program is run
  out: { type: 'string' }, // folder for the pictures and the table of their sources
  minutes: { type: 'string', default: '10' }, // how long the demo runs before
  nodes: { type: 'string', default: '' }, // agents of a running demo, such as http://localhost:9420,http://localhost:9422
  cluster: { type: 'string', default: '' }, // its cluster role
  chromium: { type: 'string', default: '/usr/bin/chromium' },
};

// pages are the addresses of the pictures, under which role.
const pages = [
  { name: 'page', address: ({ nodes }) => nodes[0] },
  { name: 'cluster', address: ({ cluster }) => cluster },
  { name: 'pod', address: ({ cluster }) => `${cluster}/pod?namespace=robotics&name=train-8lj7m` },
];

// shorten leaves paths of this machine out of the commands of the demo's pages.
function shorten() {
  for (const command of document.querySelectorAll('code')) {
    command.textContent = command.textContent.replace(/^\S*\/dra-exporter /, 'dra-exporter ').replace(/--kubeconfig=\S+ /, '');
  }
}

async function drawPage(browser, address, file) {
  const page = await browser.newPage();
  try {
    await page.setViewport({ width: WIDTH, height: HEIGHT });
    const response = await page.goto(address, { waitUntil: 'networkidle2' });
    if (!response.ok()) {
      throw new Error(`${address}: ${response.status()}`);
    }
    await page.evaluate(shorten);
    await page.screenshot({ path: file });
  } finally {
    await page.close();
  }
}

// screen returns what top writes to a terminal; script gives it one.
async function screen(repository, demo) {
  const urls = demo.nodes.map((node) => `--url=${node}`).join(' ');
  const command = `stty rows ${ROWS} cols ${COLUMNS}; TERM=xterm-256color timeout --foreground -s INT 8 ${exporter(repository)} top ${urls} --cluster-url=${demo.cluster}`;
  const { stdout } = await promisify(execFile)('script', ['-qec', command, '/dev/null'], { encoding: 'utf8' }).catch((error) => error);
  if (!stdout.includes('CLAIM')) {
    throw new Error(`top wrote no table: ${stdout.slice(0, 500)}`);
  }
  // The last frame is what is there before top leaves the terminal's second screen.
  return stdout.slice(0, stdout.lastIndexOf('\x1b[?1049l') >= 0 ? stdout.lastIndexOf('\x1b[?1049l') : undefined);
}

async function drawTerminal(browser, text, file) {
  const require = createRequire(import.meta.url);
  const page = await browser.newPage();
  try {
    await page.setViewport({ width: 1600, height: HEIGHT });
    await page.setContent('<body style="margin:0;background:#0d1117"><div id="terminal" style="display:inline-block;padding:12px"></div></body>');
    await page.addStyleTag({ path: require.resolve('@xterm/xterm/css/xterm.css') });
    await page.addScriptTag({ path: require.resolve('@xterm/xterm') });
    await page.evaluate(
      (written, rows, cols) =>
        new Promise((resolve) => {
          const theme = { background: '#0d1117', foreground: '#e6edf3' };
          const terminal = new window.Terminal({ rows, cols, theme, fontFamily: 'DejaVu Sans Mono, monospace', fontSize: 14, cursorInactiveStyle: 'none' });
          terminal.open(document.getElementById('terminal'));
          terminal.write(written, () => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        }),
      text,
      ROWS,
      COLUMNS
    );
    await (await page.$('#terminal')).screenshot({ path: file });
  } finally {
    await page.close();
  }
}

async function main() {
  const { values: options } = parseArgs({ options: flags });
  if (!options.repository || !options.out) {
    throw new Error('--repository and --out are required');
  }
  const repository = path.resolve(options.repository);
  const running = { nodes: options.nodes.split(','), cluster: options.cluster, stop: () => {} };
  const demo = options.cluster ? running : await runDemo(repository, Number(options.minutes));
  const browser = await startBrowser(options.chromium);
  const file = (name) => path.join(options.out, `${name}.png`);
  try {
    for (const { name, address } of pages) {
      await drawPage(browser, address(demo), file(name));
    }
    await drawTerminal(browser, await screen(repository, demo), file('top'));
    await writeSources(repository, options.out, [...pages.map(({ name }) => name), 'top']);
  } finally {
    await browser.close();
    await demo.stop();
  }
}

main().catch((error) => {
  console.error(`pictures: ${error.message}`);
  process.exitCode = 1;
});
