// @ts-check
// The pieces, drawn for this project. Each is an outline with a plinth below, and lines inside that show in the other tone.

/** The plinth that all pieces stand on. */
const PLINTH = "M25 91a4 4 0 0 1-4-4v-2a8 8 0 0 1 8-8h42a8 8 0 0 1 8 8v2a4 4 0 0 1-4 4z";

/**
 * Outlines and inner lines in a square of 100.
 * @type {Record<string, { outline: string, lines: string }>}
 */
const SHAPES = {
  p: {
    outline:
      "M50 19a14.5 14.5 0 0 1 9.6 25.4c3 .9 5.4 2.6 5.4 4.6 0 2.200-2.400 3-5.500 3 .8 10.500 4.500 18 11.500 25h-42c7-7 10.700-14.500 11.500-25-3.100 0-5.500-.8-5.500-3 0-2 2.400-3.700 5.400-4.600a14.500 14.500 0 0 1 9.600-25.400z",
    lines: "M41 52h18",
  },
  r: {
    outline:
      "M25 19a2 2 0 0 1 2-2h8a2 2 0 0 1 2 2v6h8v-6a2 2 0 0 1 2-2h6a2 2 0 0 1 2 2v6h8v-6a2 2 0 0 1 2-2h8a2 2 0 0 1 2 2v15.500a4 4 0 0 1-1.200 2.800l-6.800 6.700c0 13 1.500 24 5.500 33h-45c4-9 5.500-20 5.500-33l-6.800-6.700a4 4 0 0 1-1.200-2.800z",
    lines: "M33 44h34M32 67h36",
  },
  n: {
    outline:
      "M31 77c-1.500-14 8-20 14.500-26.500 2-2 3-4.500 3.500-7-4.500 3.500-9.500 3.500-13 6.500-2.500 2.200-4 5.800-7.500 6.500-4 .8-8.500-2-9.300-6.500-.4-2.300.3-4.300 1.500-6.300l7-11.700c1.800-3 2.300-6.500 3.300-9.500l-1-8.500c0-1.800 2-2.500 3.300-1.300l6.700 5.800c1-2.300 2-4.800 3.300-7 .9-1.500 3-1.400 3.700.2l2.500 5.800c18 3 31.500 18 31.500 41.500 0 7.500-1.500 13-4 18z",
    lines: "M55 27c10 5 15.500 17 15 33M31 47.500l-4.500 3",
  },
  b: {
    outline:
      "M50 9a6 6 0 0 1 4.600 9.800c11.900 7.700 17.900 18.200 17.900 28.200 0 6.500-3.500 11-8 14.500.5 6.500 3 11.500 7.500 15.500h-44c4.500-4 7-9 7.500-15.500-4.500-3.500-8-8-8-14.500 0-10 6-20.500 17.900-28.200a6 6 0 0 1 4.600-9.800z",
    lines: "M36 62h28M50 33v16M42 41h16",
  },
  q: {
    outline:
      "M30 77c.5-7-1.500-13-4-19l-7-21.500a5 5 0 1 1 5-1l8.500 10 1.500-18.500a5 5 0 1 1 5.500-.5l7 17 1.200-18.700a5.200 5.200 0 1 1 4.600 0l1.200 18.700 7-17a5 5 0 1 1 5.500.5l1.500 18.500 8.500-10a5 5 0 1 1 5 1l-7 21.500c-2.500 6-4.500 12-4 19z",
    lines: "M28 61.500c14-3.500 30-3.500 44 0M31 69.500c12-2.500 26-2.500 38 0",
  },
  k: {
    outline:
      "M46.500 7h7a1 1 0 0 1 1 1v5h5a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1h-5v7.500c1.500 1.200 2.700 2.700 3.500 4.500 4-3.500 9.500-4.500 15-2.500 10 3.600 13.500 14.500 8 24.500-4 7.300-8.500 12-9.500 22h-43c-1-10-5.500-14.700-9.500-22-5.500-10-2-20.900 8-24.500 5.500-2 11-1 15 2.500.8-1.800 2-3.300 3.500-4.500v-7.500h-5a1 1 0 0 1-1-1v-6a1 1 0 0 1 1-1h5v-5a1 1 0 0 1 1-1z",
    lines: "M30.500 66.500c12-3.500 27-3.500 39 0M50 59c0-11-1.500-18-7.500-25M50 59c0-11 1.500-18 7.500-25",
  },
};

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} name
 * @param {Record<string, string>} attributes
 */
export function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/**
 * The picture of a piece, by its letter in a FEN. What it looks like, the style sheet says.
 * @param {string} letter
 */
export function drawing(letter) {
  const role = letter.toLowerCase();
  const { outline, lines } = SHAPES[role] ?? { outline: "", lines: "" };
  const picture = svg("svg", {
    viewBox: "0 0 100 100",
    class: `drawing ${role === letter ? "black" : "white"}`,
    "aria-hidden": "true",
  });
  picture.append(
    svg("path", { class: "outline", d: `${outline}${PLINTH}` }),
    svg("path", { class: "lines", d: lines }),
  );
  if (role === "n") picture.append(svg("circle", { class: "eye", cx: "38", cy: "33.5", r: "2.6" }));
  return picture;
}
