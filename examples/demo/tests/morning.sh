# A morning at the till: a customer a second, as many as shop.env says.
customer=1
while [ "$customer" -le "${CUSTOMERS:-2}" ]; do
    sleep 1
    pieces=$((customer * 5))
    echo "customer $customer pays $(sh till.sh 250 "$pieces") cents for $pieces pieces"
    customer=$((customer + 1))
done
