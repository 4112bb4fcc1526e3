import { DraftStore, Line } from "./types";

const KEY = "cart-draft";
const DAYS = 14;

/** Keeps the cart in the browser. */
export class BrowserDrafts implements DraftStore {
  constructor(private readonly storage: Storage) {}

  /** What was kept; null where it is older than two weeks or cannot be read. */
  async load(): Promise<Line[] | null> {
    const text = this.storage.getItem(KEY);
    if (text === null) {
      return null;
    }
    try {
      const { savedAt, lines } = JSON.parse(text);
      return Date.now() - savedAt > DAYS * 86_400_000 ? null : lines;
    } catch {
      this.storage.removeItem(KEY);
      return null;
    }
  }

  async save(lines: Line[]): Promise<void> {
    this.storage.setItem(KEY, JSON.stringify({ savedAt: Date.now(), lines }));
  }
}
