// Draws every dashboard over a real Prometheus, and measures what a reader sees.
// `make boards-pictures` runs it.
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { draw, firstScreen, startBrowser } from './browser.js';
import { boardVariables, scenarios, startScenario } from './scenario.js';
import { pictureOf, writeSources } from './pictures.js';
import { serve } from './server.js';
import { writeDetails, writeTable } from './table.js';

const flags = {
  repository: { type: 'string' }, // the clone whose boards, rules and programs are taken
  out: { type: 'string' }, // folder for pictures and details.txt
  table: { type: 'string', default: '' }, // file for the table; default: measured.csv in out
  documents: { type: 'string', default: '' }, // folder of the documents' pictures, which some boards are
  scenario: { type: 'string', default: 'live' },
  minutes: { type: 'string', default: '' }, // how long Prometheus scrapes; default: that of the scenario
  prometheus: { type: 'string', default: '' }, // a running Prometheus instead of one that is started
  boards: { type: 'string', default: '' }, // such as core/claims,core/node; default: all; the table keeps the lines of others
  variables: { type: 'string', default: '' }, // such as 'namespace=llm&kind=PodGroup&workload=post-train'
  themes: { type: 'string', default: 'dark,light' },
  widths: { type: 'string', default: '1600,1300' },
  rows: { type: 'string', default: 'open' }, // collapsed rows: open, or closed as Grafana shows them first
  chromium: { type: 'string', default: '/usr/bin/chromium' },
};

async function findBoards(repository) {
  const folder = path.join(repository, 'dashboards');
  const names = [];
  for (const set of (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory() && entry.name !== 'gen')) {
    for (const file of await readdir(path.join(folder, set.name))) {
      if (file.endsWith('.json')) {
        names.push(`${set.name}/${file.slice(0, -'.json'.length)}`);
      }
    }
  }
  return names.sort();
}

async function findViews(options, scenario, prometheus) {
  if (scenario.views) {
    return scenario.views(prometheus);
  }
  const given = Object.fromEntries(new URLSearchParams(options.variables));
  const boards = options.boards ? options.boards.split(',') : await findBoards(options.repository);
  return Promise.all(boards.map(async (board) => ({ board, name: board, variables: { ...(await boardVariables(board, prometheus)), ...given } })));
}

async function drawViews(options, scenario, prometheus) {
  const require = createRequire(import.meta.url);
  const folders = {
    bundle: path.join(import.meta.dirname, 'bundle'),
    boards: path.join(options.repository, 'dashboards'),
    public: path.join(path.dirname(require.resolve('@grafana/ui/package.json')), 'dist/public'),
    fonts: path.join(path.dirname(require.resolve('@fontsource/inter/package.json')), '..'),
  };
  const server = await serve(folders, prometheus);
  const browser = await startBrowser(options.chromium);
  // All pictures are of one moment.
  const to = Date.now();
  const results = [];
  try {
    for (const view of await findViews(options, scenario, prometheus)) {
      const runs = [];
      for (const width of options.widths.split(',').map(Number)) {
        for (const theme of options.themes.split(',')) {
          const run = await draw(browser, server.address, view, { theme, width, to, rows: options.rows, folder: options.out });
          runs.push({ ...run, theme, width });
        }
      }
      const errors = new Set(runs.flatMap((run) => [...run.errors, ...run.panels.flatMap((panel) => panel.errors)]));
      console.log(`${view.name}: ${runs[0].panels.length} panels, ${errors.size} errors`);
      errors.forEach((error) => console.log(`  ${error}`));
      if (options.documents && pictureOf(view.board)) {
        await keep(options, view);
      }
      results.push({ view, runs });
    }
  } finally {
    await browser.close();
    server.close();
  }
  return results;
}

// keep copies a board's first screen to the pictures of the documents.
async function keep(options, view) {
  const picture = pictureOf(view.board);
  await copyFile(path.join(options.out, firstScreen(view.name)), path.join(options.documents, `${picture}.png`));
  await writeSources(options.repository, options.documents, [picture]);
}

async function main() {
  const { values: options } = parseArgs({ options: flags });
  const scenario = scenarios[options.scenario];
  if (!options.repository || !options.out || !scenario) {
    throw new Error(`--repository and --out are required; --scenario is one of ${Object.keys(scenarios).join(', ')}`);
  }
  options.repository = path.resolve(options.repository);
  await mkdir(options.out, { recursive: true });
  const minutes = Number(options.minutes || scenario.minutes);
  const programs = options.prometheus ? { address: options.prometheus, stop: () => {} } : await startScenario(options.repository, scenario, minutes);
  try {
    const results = await drawViews(options, scenario, programs.address);
    await writeTable(options.table || path.join(options.out, 'measured.csv'), options.repository, results, { areSome: Boolean(options.boards) });
    await writeDetails(path.join(options.out, 'details.txt'), results);
    if (results.some(({ runs }) => runs.some((run) => run.panels.length === 0))) {
      throw new Error('a board was not drawn');
    }
  } finally {
    await programs.stop();
  }
}

main().catch((error) => {
  console.error(`boards: ${error.message}`);
  process.exitCode = 1;
});
