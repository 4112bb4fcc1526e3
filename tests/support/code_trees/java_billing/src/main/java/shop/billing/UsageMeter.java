package shop.billing;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Counts what customers use. */
public class UsageMeter {
    private final Map<String, Long> units = new HashMap<>();
    private final Set<String> seen = new HashSet<>();

    /** Counts an event once, however often it is delivered. */
    public boolean record(String eventId, String customer, long amount) {
        if (!seen.add(eventId)) {
            return false;
        }
        units.merge(customer, amount, Long::sum);
        return true;
    }

    /** What a customer used since the last month ended; the counter begins anew. */
    public long closeMonth(String customer) {
        Long used = units.remove(customer);
        return used == null ? 0 : used;
    }
}
