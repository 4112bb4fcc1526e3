export interface Line {
  sku: string;
  quantity: number;
  unitCents: number;
}

export interface Discount {
  code: string;
  percent?: number;
  cents?: number;
  minimumCents?: number;
  expires?: Date;
}

/** Whatever can keep a cart between visits. */
export interface DraftStore {
  load(): Promise<Line[] | null>;
  save(lines: Line[]): Promise<void>;
}

export interface StockService {
  available(sku: string): Promise<number>;
}
