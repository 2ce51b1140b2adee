// The page of one dashboard: its head, its grid of 24 columns, its rows.
//
// Parameters of the address: board (such as core/claims), theme, to (milliseconds),
// rows=open for collapsed rows, and var-NAME for a variable.
import './set-up.js';
import { createRoot } from 'react-dom/client';
import { ThemeContext, createTheme, dateTime, rangeUtil } from '@grafana/data';
import { GlobalStyles, Icon } from '@grafana/ui';
import { Panel } from './panels.jsx';
import { begin, end } from './progress.js';
import { labelValues, runAnnotations } from './queries.js';
import { interpolate, label, loadVariables, values } from './variables.js';
import { measure } from './measure.js';
import './page.css';

const ROW_HEIGHT = 30;
const GAP = 8;
const PADDING = 16;
const COLUMNS = 24;

const parameters = new URLSearchParams(location.search);

function timeRange(board) {
  const to = Number(parameters.get('to') ?? Date.now());
  const back = board.time.from.match(/^now-(\w+)$/);
  if (!back || board.time.to !== 'now') {
    throw new Error(`the range ${board.time.from} to ${board.time.to} is not known`);
  }
  const from = to - rangeUtil.intervalToMs(back[1]);
  return { from, to, start: dateTime(from), end: dateTime(to), text: `Last ${back[1]}` };
}

// layOut returns what is drawn with its place: rows that repeat are there once for
// each value, and collapsed rows are open when asked for.
function layOut(board, variables) {
  const sections = [{ panels: [] }];
  for (const panel of board.panels) {
    if (panel.type === 'row') {
      sections.push({ row: panel, panels: [...panel.panels] });
    } else {
      sections.at(-1).panels.push(panel);
    }
  }
  const items = [];
  let top = 0;
  for (const { row, panels } of sections) {
    const repeats = row?.repeat ? values(variables.get(row.repeat)) : [undefined];
    for (const repeat of repeats) {
      const scoped = repeat === undefined ? {} : { [row.repeat]: repeat };
      if (row) {
        items.push({ panel: row, scoped, y: top, x: 0, w: COLUMNS, h: 1 });
        top++;
        if (row.collapsed && parameters.get('rows') !== 'open') {
          continue;
        }
      }
      const first = Math.min(...panels.map((panel) => panel.gridPos.y));
      const bottom = Math.max(...panels.map((panel) => panel.gridPos.y + panel.gridPos.h), first);
      for (const panel of panels) {
        const { x, y, w, h } = panel.gridPos;
        items.push({ panel, scoped, x, y: top + y - first, w, h });
      }
      top += panels.length > 0 ? bottom - first : 0;
    }
  }
  return { items, height: top };
}

function Row({ panel, variables, scoped }) {
  const isOpen = !panel.collapsed || parameters.get('rows') === 'open';
  return (
    <div className="row">
      <Icon name={isOpen ? 'angle-down' : 'angle-right'} />
      <span>{interpolate(panel.title, variables, scoped)}</span>
      {!isOpen && <span className="row-count">({panel.panels.length} panels)</span>}
    </div>
  );
}

function Head({ board, variables, range }) {
  const shown = [...variables.values()].filter((variable) => variable.hide !== 2);
  return (
    <header>
      <div className="path">
        <span>Home › Dashboards › {board.title}</span>
        <span>
          {range.text} · refresh {board.refresh}
        </span>
      </div>
      <div className="controls">
        {shown.map((variable) => (
          <span key={variable.name} className="variable">
            <label>{variable.label || variable.name}</label>
            <span>{label(variable) || 'None'}</span>
          </span>
        ))}
        {(board.annotations?.list ?? []).map((annotation) => (
          <span key={annotation.name} className="variable">
            <label>{annotation.name}</label>
            <span>{annotation.enable ? 'on' : 'off'}</span>
          </span>
        ))}
        <span className="links">
          {(board.links ?? []).map((link) => (
            <span key={link.title} className="link">
              {link.title}
            </span>
          ))}
        </span>
      </div>
    </header>
  );
}

function Board({ board, variables, range, annotations }) {
  const { items, height } = layOut(board, variables);
  const width = document.documentElement.clientWidth - 2 * PADDING;
  const column = (width - GAP * (COLUMNS - 1)) / COLUMNS;
  const span = (count, size) => count * size + (count - 1) * GAP;
  return (
    <main style={{ padding: PADDING }}>
      <Head board={board} variables={variables} range={range} />
      {annotations.errors.map((error) => (
        <div key={error} className="board-error">
          {error}
        </div>
      ))}
      <div className="grid" style={{ height: span(height, ROW_HEIGHT) }}>
        {items.map(({ panel, scoped, x, y, w, h }, index) => (
          <div
            key={index}
            style={{ position: 'absolute', left: x * (column + GAP), top: y * (ROW_HEIGHT + GAP), width: span(w, column), height: span(h, ROW_HEIGHT) }}
          >
            {panel.type === 'row' ? (
              <Row panel={panel} variables={variables} scoped={scoped} />
            ) : (
              <Panel panel={panel} width={span(w, column)} height={span(h, ROW_HEIGHT)} range={range} variables={variables} scoped={scoped} marks={annotations.marks} />
            )}
          </div>
        ))}
      </div>
    </main>
  );
}

async function open() {
  begin();
  const board = await (await fetch(`/boards/${parameters.get('board')}.json`)).json();
  const range = timeRange(board);
  const variables = await loadVariables(board, range, parameters, labelValues);
  const annotations = await runAnnotations(board, range, innerWidth, variables);
  const theme = createTheme({ colors: { mode: parameters.get('theme') ?? 'dark' } });
  document.body.className = `theme-${theme.colors.mode}`;
  document.title = board.title;
  window.measure = () => measure(annotations.errors);
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Board board={board} variables={variables} range={range} annotations={annotations} />
    </ThemeContext.Provider>
  );
  end();
}

open().catch((error) => {
  document.body.dataset.failure = error.stack;
});
