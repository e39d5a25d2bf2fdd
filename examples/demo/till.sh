# till.sh PRICE COUNT: what to pay for COUNT pieces at PRICE cents each, in cents.
price=$1
count=$2
total=$((price * count))
if [ "$count" -gt 10 ]; then
    total=$((total - total / 10))
fi
echo "$total"
