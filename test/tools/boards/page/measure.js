// Measures what a reader of the drawn page sees.

const ROW_HEIGHT = 36; // of a table with small cells
const count = (elements, test) => [...elements].filter(test).length;
const texts = (elements) => [...elements].map((element) => element.textContent.trim());

// contentBox is where the text of an element can be seen: an ellipsis begins before the padding.
function contentBox(element) {
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return { left: box.left + parseFloat(style.paddingLeft), right: box.right - parseFloat(style.paddingRight) };
}

// TOLERANCE is for rounding: an ellipsis appears as soon as a part of a pixel is missing.
const TOLERANCE = 0.1;

/**
 * isCut tells whether a text within the element goes beyond a box that hides what
 * does. Widths to scroll would also count buttons that appear below the pointer.
 */
function isCut(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const text = range.getBoundingClientRect();
    for (let box = walker.currentNode.parentElement; text.width > 0; box = box.parentElement) {
      const { left, right } = contentBox(box);
      if (getComputedStyle(box).overflowX !== 'visible' && (text.right > right + TOLERANCE || text.left < left - TOLERANCE)) {
        return true;
      }
      if (box === element) {
        break;
      }
    }
  }
  return false;
}

// named are the texts of panels that are neither tables nor time series.
const named = ['stat', 'bargauge', 'state-timeline', 'heatmap'];

const content = (panel) => panel.querySelector('[data-testid="data-testid panel content"]');

function leaves(panel) {
  if (!named.includes(panel.dataset.type)) {
    return [];
  }
  return [...content(panel).querySelectorAll('*')].filter((each) => each.children.length === 0 && each.textContent.trim() && !each.classList.contains('band'));
}

function valuesCut(panel) {
  return leaves(panel).filter((leaf) => isCut(leaf) || isOutside(leaf, content(panel)));
}

function isOutside(element, panel) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const text = range.getBoundingClientRect();
  const box = panel.getBoundingClientRect();
  return text.width > 0 && (text.right > box.right + 1 || text.left < box.left - 1 || text.bottom > box.bottom + 1);
}

// columnsHidden counts the columns of a table that begin or end beyond its right edge.
function columnsHidden(panel) {
  const right = panel.getBoundingClientRect().right;
  return count(panel.querySelectorAll('[role=columnheader]'), (cell) => cell.getBoundingClientRect().right > right + 1);
}

// rowsHidden counts the rows that do not fit into a table without scrolling, and the
// bands of a state timeline that are on its further pages.
function rowsHidden(panel) {
  const timeline = panel.querySelector('.state-timeline');
  if (timeline) {
    return Number(timeline.dataset.bands) - Number(timeline.dataset.shown);
  }
  const table = panel.querySelector('[role=table]');
  const rows = Number(panel.dataset.rows || 0);
  if (!table || rows === 0) {
    return 0;
  }
  const header = table.querySelector('[role=columnheader]') ? ROW_HEIGHT : 0;
  return Math.max(rows - Math.floor((table.clientHeight - header) / ROW_HEIGHT), 0);
}

// plotShare is the part of the panel's area that its plot covers.
function plotShare(panel) {
  const plot = panel.querySelector('.u-over');
  if (!plot) {
    return null;
  }
  const inner = plot.getBoundingClientRect();
  const outer = panel.firstElementChild.getBoundingClientRect();
  return (inner.width * inner.height) / (outer.width * outer.height);
}

// legendHidden counts the entries of a legend that cannot be seen without scrolling.
function legendHidden(panel) {
  const plot = panel.querySelector('.u-over');
  if (!plot) {
    return 0;
  }
  const bottom = panel.firstElementChild.getBoundingClientRect().bottom;
  return count(panel.querySelectorAll('.panel table tbody tr, .panel [class*=LegendItemWrapper]'), (row) => row.getBoundingClientRect().bottom > bottom);
}

// legendCut tells whether a legend has columns beyond the panel's right edge.
function legendCut(panel) {
  const right = panel.firstElementChild.getBoundingClientRect().right;
  return [...panel.querySelectorAll('table')].some((legend) => legend.getBoundingClientRect().right > right);
}

// smallestText is the height in pixels of the smallest text of a panel with values.
function smallestText(panel) {
  const sizes = leaves(panel).map((leaf) => parseFloat(getComputedStyle(leaf).fontSize));
  return sizes.length > 0 ? Math.min(...sizes) : null;
}

/** Returns a list with one element for each panel, and the errors of the board itself. */
export function measure(errors) {
  const panels = [...document.querySelectorAll('.panel')].map((panel) => {
    const title = panel.querySelector('h2');
    const cells = [...panel.querySelectorAll('[role=cell]')].filter(isCut);
    const headers = [...panel.querySelectorAll('[role=columnheader]')].filter(isCut);
    return {
      title: panel.dataset.title,
      type: panel.dataset.type,
      titleCut: Boolean(title && isCut(title.parentElement)),
      headersCut: texts(headers),
      cellsCut: texts(cells),
      valuesCut: texts(valuesCut(panel)),
      columnsHidden: columnsHidden(panel),
      rowsHidden: rowsHidden(panel),
      legendHidden: legendHidden(panel),
      legendCut: legendCut(panel),
      smallestText: smallestText(panel),
      isEmpty: panel.dataset.empty === 'true',
      plotShare: plotShare(panel),
      errors: [...JSON.parse(panel.dataset.errors), ...texts(panel.querySelectorAll('.part-error'))],
    };
  });
  return { panels, errors, height: document.documentElement.scrollHeight };
}
