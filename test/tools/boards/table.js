// The table of what was measured: a line for each board.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
const most = (runs, measure) => Math.max(...runs.map(measure));
const all = (run, measure) => sum(run.panels.map(measure));
const shares = (run) => run.panels.map((panel) => panel.plotShare).filter((share) => share !== null);
const percent = (share) => (Number.isFinite(share) ? String(Math.round(share * 100)) : '');

const smallest = (runs) => {
  const sizes = runs.flatMap((run) => run.panels.map((panel) => panel.smallestText)).filter((size) => size !== null);
  return sizes.length > 0 ? Math.round(Math.min(...sizes)) : '';
};

// columns are the worst of all themes and widths.
const columns = {
  panels: (runs) => most(runs, (run) => run.panels.length),
  titles_cut: (runs) => most(runs, (run) => all(run, (panel) => Number(panel.titleCut))),
  headers_cut: (runs) => most(runs, (run) => all(run, (panel) => panel.headersCut.length)),
  cells_cut: (runs) => most(runs, (run) => all(run, (panel) => panel.cellsCut.length)),
  values_cut: (runs) => most(runs, (run) => all(run, (panel) => panel.valuesCut.length)),
  columns_hidden: (runs) => most(runs, (run) => all(run, (panel) => panel.columnsHidden)),
  rows_hidden: (runs) => most(runs, (run) => all(run, (panel) => panel.rowsHidden)),
  legend_rows_hidden: (runs) => most(runs, (run) => all(run, (panel) => panel.legendHidden)),
  legends_cut: (runs) => most(runs, (run) => all(run, (panel) => Number(panel.legendCut))),
  empty: (runs) => most(runs, (run) => all(run, (panel) => Number(panel.isEmpty))),
  errors: (runs) => most(runs, (run) => run.errors.length + all(run, (panel) => panel.errors.length)),
  plot_percent_min: (runs) => percent(Math.min(...runs.flatMap(shares))),
  plot_percent_mean: (runs) => percent(sum(runs.flatMap(shares)) / runs.flatMap(shares).length),
  smallest_text: smallest,
  height: (runs) => most(runs, (run) => run.height),
};

/** Returns the first 12 digits of the SHA-256 of a board's file. */
export async function boardHash(repository, board) {
  const text = await readFile(path.join(repository, 'dashboards', `${board}.json`));
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

// readLines returns the lines of a table by their board, if it has the same columns.
async function readLines(file, header) {
  const text = await readFile(file, 'utf8').catch(() => '');
  const [first, ...lines] = text.trimEnd().split('\n');
  return new Map(first === header ? lines.map((line) => [line.split(',')[0], line]) : []);
}

/**
 * Writes the table as CSV, which a test, a spreadsheet and a diff can read. If only some
 * boards were drawn, the lines of the others stay.
 */
export async function writeTable(file, repository, results, { areSome }) {
  const header = ['board', 'json', ...Object.keys(columns)].join(',');
  const lines = areSome ? await readLines(file, header) : new Map();
  for (const { view, runs } of results) {
    const hash = await boardHash(repository, view.board);
    lines.set(view.name, [view.name, hash, ...Object.values(columns).map((column) => column(runs))].join(','));
  }
  const sorted = [...lines.keys()].sort().map((name) => lines.get(name));
  await writeFile(file, [header, ...sorted].join('\n') + '\n');
}

/** Writes what is behind the numbers: the panels, and the texts that are cut. */
export async function writeDetails(file, results) {
  const lines = [];
  for (const { view, runs } of results) {
    for (const run of runs) {
      lines.push(`${view.name} ${run.theme} ${run.width}`);
      run.errors.forEach((error) => lines.push(`  error: ${error}`));
      for (const panel of run.panels) {
        const findings = Object.entries({
          'title cut': panel.titleCut,
          'headers cut': panel.headersCut.join(' | '),
          'cells cut': panel.cellsCut.join(' | '),
          'values cut': panel.valuesCut.join(' | '),
          'columns hidden': panel.columnsHidden,
          'rows hidden': panel.rowsHidden,
          'legend rows hidden': panel.legendHidden,
          'legend cut': panel.legendCut,
          'smallest text': panel.smallestText !== null && panel.smallestText < 12 ? panel.smallestText.toFixed(1) : '',
          empty: panel.isEmpty,
          'plot percent': panel.plotShare === null ? '' : percent(panel.plotShare),
          errors: panel.errors.join(' | '),
        }).filter(([, value]) => value);
        if (findings.length > 0) {
          lines.push(`  ${panel.title} (${panel.type}): ${findings.map(([name, value]) => (value === true ? name : `${name}: ${value}`)).join('; ')}`);
        }
      }
    }
  }
  await writeFile(file, lines.join('\n') + '\n');
}
