package shop.billing;

import java.math.BigDecimal;
import java.util.List;

/** A price that falls with the quantity: each tier has its own price for the units within it. */
public class TieredPrice implements PricePolicy {
    /** Units up to a limit, and what each of them costs. */
    public record Tier(long upTo, BigDecimal each) {}

    private final List<Tier> tiers;

    public TieredPrice(List<Tier> tiers) {
        this.tiers = List.copyOf(tiers);
    }

    @Override
    public BigDecimal priceOf(long units) {
        BigDecimal sum = BigDecimal.ZERO;
        long counted = 0;
        for (Tier tier : tiers) {
            long within = Math.min(units, tier.upTo()) - counted;
            if (within <= 0) {
                break;
            }
            sum = sum.add(tier.each().multiply(BigDecimal.valueOf(within)));
            counted += within;
        }
        return sum;
    }
}
