// Says when everything is drawn: the browser's driver waits for document.body.dataset.ready.
let pending = 0;

export function begin() {
  pending++;
}

export function end() {
  pending--;
  if (pending === 0) {
    finish();
  }
}

async function finish() {
  await document.fonts.ready;
  // Virtual lists measure themselves and are drawn again.
  for (let frame = 0; frame < 5; frame++) {
    await new Promise(requestAnimationFrame);
  }
  if (pending === 0) {
    document.body.dataset.ready = 'true';
  }
}
