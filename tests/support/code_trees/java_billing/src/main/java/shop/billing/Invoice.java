package shop.billing;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;

/** What a customer owes for one month. */
public class Invoice {
    private final String customer;
    private final LocalDate due;
    private final List<BigDecimal> amounts = new ArrayList<>();
    private BigDecimal paid = BigDecimal.ZERO;

    public Invoice(String customer, LocalDate due) {
        this.customer = customer;
        this.due = due;
    }

    public void add(BigDecimal amount) {
        amounts.add(amount);
    }

    /** All amounts with tax, rounded once at the end. */
    public BigDecimal total(BigDecimal taxRate) {
        BigDecimal net = amounts.stream().reduce(BigDecimal.ZERO, BigDecimal::add);
        return Rounding.toCents(net.multiply(BigDecimal.ONE.add(taxRate)));
    }

    /** Books money that came in; what is too much is given back as credit. */
    public BigDecimal pay(BigDecimal amount, BigDecimal taxRate) {
        BigDecimal open = total(taxRate).subtract(paid);
        BigDecimal booked = amount.min(open);
        paid = paid.add(booked);
        return amount.subtract(booked);
    }

    public boolean isOverdue(LocalDate today, BigDecimal taxRate) {
        return today.isAfter(due) && paid.compareTo(total(taxRate)) < 0;
    }

    public LocalDate due() {
        return due;
    }

    public String customer() {
        return customer;
    }
}
